package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"tendril/api"
	"tendril/internal/observe/series"
)

// topFrame is what 'tendril top' shows at one moment.
type topFrame struct {
	now    time.Time
	status api.Status
	curves series.Curves // of the last 15 minutes
	// lost says why the figures are those of an earlier moment; "" when they are not.
	lost string
	// footer is the last line: a question, a result, or the keys.
	footer string
	scroll int // lines of the middle that are above the screen
	color  bool
}

const topKeys = "q quit   p pause   ↑ ↓ scroll"

// lines are the frame on a terminal of that size: head, as much of the middle as there is room for, and footer. With
// height 0 they are all of it, without footer. No line is wider than width, and what others wrote cannot
// control the terminal.
func (f *topFrame) lines(width, height int) []string {
	head, middle := f.head(width), f.middle(width)
	if height > 0 {
		room := max(height-len(head)-1, 0)
		f.scroll = max(min(f.scroll, len(middle)-room), 0)
		below := len(middle) - f.scroll - room
		middle = middle[f.scroll:min(f.scroll+room, len(middle))]
		for len(middle) < room {
			middle = append(middle, nil)
		}
		footer := Cells{StyledText(cmp.Or(f.footer, topKeys), Faint)}
		if f.footer != "" {
			footer[0].Style = Bold
		}
		if below > 0 {
			footer = append(footer, StyledText(fmt.Sprintf("   %d more ↓", below), PlainText))
		}
		middle = append(middle, footer)
		head = head[:min(len(head), max(height-1, 0))]
	}
	all := append(head, middle...)
	shown := make([]string, len(all))
	for i, l := range all {
		shown[i] = l.Render(width, f.color)
	}
	return shown
}

// head is the environment, its health, and what passes through it.
func (f *topFrame) head(width int) []Cells {
	st := &f.status
	word, tone := cmp.Or(st.State, "running"), PlainText
	if h := st.Health; h != nil {
		word, tone = string(h.Status), HealthStyle(h.Status)
		if !h.Since.IsZero() {
			word += " for " + Age(f.now.Sub(h.Since))
		}
	}
	first := Cells{StyledText(st.Environment, Bold), StyledText("  ", PlainText), StyledText("● "+word, tone)}
	if paused := f.paused(); paused > 0 {
		first = append(first, StyledText("  "+Plural(paused, "queue")+" paused", Yellow))
	}
	backend := "embedded queue"
	if st.Backend == api.BackendSQS {
		backend = "Amazon SQS"
	}
	right := backend
	if !st.StartedAt.IsZero() {
		right += "  up " + Age(f.now.Sub(st.StartedAt))
	}
	right += "  " + f.now.UTC().Format("15:04:05Z")
	used := 0
	for _, s := range first {
		used += uniseg.StringWidth(Plain(s.Text))
	}
	if gap := width - used - uniseg.StringWidth(right); gap > 1 {
		first = append(first, StyledText(strings.Repeat(" ", gap), PlainText), StyledText(right, Faint))
	}
	lines := []Cells{first, f.totals(width)}
	if f.lost != "" {
		lines = append(lines, Cells{StyledText("■ "+f.lost, Red)})
	}
	return append(lines, nil)
}

func (f *topFrame) paused() (n int) {
	for i := range f.status.Workers {
		if f.status.Workers[i].Paused {
			n++
		}
	}
	return n
}

// totals are the newest points of the curves that are complete, with the shape of the last minutes where there is room.
func (f *topFrame) totals(width int) Cells {
	c := &f.curves.Series
	spark := func(values series.Values) string {
		if width < 110 {
			return ""
		}
		return " " + strings.TrimLeft(sparkline(values, 16), " ")
	}
	flight := 0
	limit := 0
	for i := range f.status.Workers {
		flight += f.status.Workers[i].InWork
		limit = max(limit, f.status.Workers[i].Concurrency)
	}
	l := Cells{StyledText("in ", Faint), StyledText(rateText(c.In.Newest())+spark(c.In), PlainText),
		StyledText("   out ", Faint), StyledText(rateText(c.Out.Newest())+spark(c.Out), PlainText)}
	if len(f.status.Workers) > 0 {
		l = append(l, StyledText("   in work ", Faint), StyledText(fmt.Sprintf("%d of %d", flight, limit), PlainText))
	}
	if p95, known := c.P95MS.Newest(); known {
		l = append(l, StyledText("   p95 ", Faint), StyledText(shortDuration(p95), PlainText))
	}
	if oldest, known := c.OldestSeconds.Newest(); known {
		l = append(l, StyledText("   oldest ", Faint), StyledText(Seconds(float64(oldest)), PlainText))
	}
	return l
}

func rateText(v float32, known bool) string {
	switch {
	case !known:
		return "-"
	case v >= 100:
		return fmt.Sprintf("%.0f/s", v)
	}
	return fmt.Sprintf("%.1f/s", v)
}

func shortDuration(ms float32) string {
	if ms < 1000 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

// sparkline is the shape of the last points, one column each.
func sparkline(values series.Values, columns int) string {
	values = values[max(len(values)-columns, 0):]
	most := float32(0)
	for _, v := range values {
		if v == v {
			most = max(most, v)
		}
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values {
		switch {
		case v != v:
			b.WriteByte(' ')
		case most == 0:
			b.WriteRune(bars[0])
		default:
			b.WriteRune(bars[int(v/most*float32(len(bars)-1)+0.5)])
		}
	}
	return b.String()
}

// middle is everything between head and footer.
func (f *topFrame) middle(width int) (lines []Cells) {
	section := func(rows topTable) {
		if len(lines) > 0 {
			lines = append(lines, nil)
		}
		lines = append(lines, rows.lines(width)...)
	}
	if h := f.status.Health; h != nil {
		for _, cause := range h.Each() {
			lines = append(lines, Cells{StyledText("▲ ", HealthStyle(cause.Status)), StyledText(cause.Text, PlainText)})
		}
		if len(h.Causes) == 0 {
			lines = append(lines, Cells{StyledText("Nothing needs you.", Faint)})
		}
	}
	if len(f.status.Queues) > 0 {
		section(f.queues())
	}
	if len(f.status.App) > 0 {
		section(f.processes())
	}
	if tasks := f.status.Tasks.First(5); len(tasks) > 0 {
		section(f.tasks(tasks))
	}
	if len(f.status.Problems) > 0 {
		section(f.problems())
	}
	return lines
}

func (f *topFrame) queues() topTable {
	rows := topTable{{StyledText("QUEUE", Faint), StyledText("STATE", Faint), StyledText("WAITING", Faint), StyledText("IN FLIGHT", Faint), StyledText("OLDEST", Faint),
		StyledText("IN/S", Faint), StyledText("OUT/S", Faint), StyledText("FAILING", Faint), StyledText("WHY", Faint)}}
	workers := map[string]*api.Worker{}
	dead := map[string]bool{}
	for i := range f.status.Workers {
		workers[f.status.Workers[i].Queue] = &f.status.Workers[i]
	}
	for i := range f.status.Queues {
		dead[f.status.Queues[i].DeadLetterQueue] = true
	}
	rank := func(q api.Queue) int {
		switch {
		case workers[q.Name] != nil:
			return 0
		case !dead[q.Name]:
			return 1
		}
		return 2
	}
	queues := slices.Clone(f.status.Queues)
	slices.SortStableFunc(queues, func(a, b api.Queue) int { return cmp.Compare(rank(a), rank(b)) })
	for _, q := range queues {
		state, why, tone, failing := "-", "", PlainText, "-"
		if w := workers[q.Name]; w != nil {
			state, why = w.State()
			tone = map[string]Style{api.QueueRunning: Green, api.QueueFailing: Red}[state]
			tone = cmp.Or(tone, Yellow)
			failing = fmt.Sprintf("%.0f%%", 100*w.FailingShare())
		} else if dead[q.Name] {
			if state = "Dead"; q.Ledger.Live > 0 {
				tone = Yellow
			}
		}
		traffic := f.curves.Queues[q.Name]
		rows = append(rows, Cells{StyledText(q.Name, PlainText), StyledText(state, tone), StyledText(fmt.Sprint(q.Ledger.Visible), PlainText),
			StyledText(fmt.Sprint(q.Ledger.InFlight), PlainText), StyledText(Seconds(q.OldestSeconds), PlainText),
			StyledText(perSecond(traffic.In.Newest()), PlainText), StyledText(perSecond(traffic.Out.Newest()), PlainText), StyledText(failing, PlainText),
			StyledText(why, Faint)})
	}
	return rows
}

func perSecond(v float32, known bool) string { return strings.TrimSuffix(rateText(v, known), "/s") }

func (f *topFrame) processes() topTable {
	rows := topTable{{StyledText("PROCESS", Faint), StyledText("STATE", Faint), StyledText("PID", Faint), StyledText("FOR", Faint), StyledText("RESTARTS", Faint),
		StyledText("LAST EXIT", Faint)}}
	for _, p := range f.status.App {
		tone, pid, lasts := Yellow, "-", "-"
		if p.Ready {
			tone = Green
		}
		if p.PID > 0 {
			pid = fmt.Sprint(p.PID)
		}
		if !p.Since.IsZero() {
			lasts = Age(f.now.Sub(p.Since))
		}
		rows = append(rows, Cells{StyledText(p.Name, PlainText), StyledText(p.State, tone), StyledText(pid, PlainText), StyledText(lasts, PlainText),
			StyledText(fmt.Sprint(p.Restarts), PlainText), StyledText(p.LastExit, PlainText)})
	}
	return rows
}

func (f *topFrame) tasks(tasks []api.Task) topTable {
	rows := topTable{{StyledText("TASK", Faint), StyledText("STATE", Faint), StyledText("LAST RUN", Faint), StyledText("NEXT IN", Faint), StyledText("WHY", Faint)}}
	for i := range tasks {
		t := &tasks[i]
		last, next := "-", "-"
		if t.Last != nil {
			last = cmp.Or(t.Last.Outcome, t.Last.Skipped, "enqueued")
		}
		if len(t.Next) > 0 && !t.Paused {
			next = Age(t.Next[0].Sub(f.now))
		}
		tone := map[string]Style{api.TaskScheduled: Green, api.TaskFailing: Red}[t.State()]
		rows = append(rows, Cells{StyledText(t.Name, PlainText), StyledText(t.State(), cmp.Or(tone, Yellow)), StyledText(last, PlainText),
			StyledText(next, PlainText), StyledText(cmp.Or(t.Why(), t.Words), Faint)})
	}
	return rows
}

func (f *topFrame) problems() topTable {
	rows := topTable{{StyledText("FAILED IN", Faint), StyledText("COUNT", Faint), StyledText("LAST", Faint), StyledText("REASON", Faint)}}
	for _, p := range f.status.Problems[:min(len(f.status.Problems), 10)] {
		rows = append(rows, Cells{StyledText(p.Queue, PlainText), StyledText(fmt.Sprint(p.Count), Red), StyledText(Age(f.now.Sub(p.Last)), PlainText),
			StyledText(p.Reason, PlainText)})
	}
	return rows
}

// topTable is rows of cells below a heading. Columns whose cells are figures are aligned to the right.
type topTable []Cells

const topGap = 2 // columns between cells

// lines are the rows with their cells padded. The first column, a name, gives way when the others need the room; the
// last one gets what is left.
func (t topTable) lines(width int) []Cells {
	columns := len(t[0])
	widths := make([]int, columns)
	figures := make([]bool, columns)
	for i := range columns {
		figures[i] = i > 0
		for j, row := range t {
			widths[i] = max(widths[i], uniseg.StringWidth(Plain(row[i].Text)))
			figures[i] = figures[i] && (j == 0 || isFigure(row[i].Text))
		}
	}
	rest := width
	for _, w := range widths[1 : columns-1] {
		rest -= w + topGap
	}
	widths[0] = max(min(widths[0], rest-topGap, 40), 8)
	all := make([]Cells, len(t))
	for j, row := range t {
		for i, c := range row {
			text := Plain(c.Text)
			if i < columns-1 {
				text = CutWidth(text, widths[i])
				padding := strings.Repeat(" ", widths[i]-uniseg.StringWidth(text))
				if figures[i] {
					text = padding + text
				} else {
					text += padding
				}
				text += strings.Repeat(" ", topGap)
			}
			all[j] = append(all[j], StyledText(text, c.Style))
		}
	}
	return all
}

// isFigure reports whether a cell holds a number, a share, an age or nothing.
func isFigure(text string) bool {
	return text == "-" || strings.Trim(text, "0123456789.%smhd") == ""
}
