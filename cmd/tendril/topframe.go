package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"tendril/api"
	"tendril/internal/observe/health"
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

// style is a colour of text, as a parameter of the sequence that chooses it; "" for none.
type style string

const (
	plainText style = ""
	bold      style = "1"
	faint     style = "2"
	red       style = "31"
	green     style = "32"
	yellow    style = "33"
	cyan      style = "36"
)

// cell is text in one style, and cells some of them beside each other.
type cell struct {
	text  string
	style style
}
type cells []cell

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
		footer := cells{{cmp.Or(f.footer, topKeys), faint}}
		if f.footer != "" {
			footer[0].style = bold
		}
		if below > 0 {
			footer = append(footer, cell{fmt.Sprintf("   %d more ↓", below), plainText})
		}
		middle = append(middle, footer)
		head = head[:min(len(head), max(height-1, 0))]
	}
	all := append(head, middle...)
	shown := make([]string, len(all))
	for i, l := range all {
		shown[i] = l.render(width, f.color)
	}
	return shown
}

// render is a line as text for the terminal.
func (l cells) render(width int, color bool) string {
	var b strings.Builder
	for _, s := range l {
		text := cutWidth(plain(s.text), width)
		width -= uniseg.StringWidth(text)
		if color && s.style != plainText && text != "" {
			text = "\x1b[" + string(s.style) + "m" + text + "\x1b[0m"
		}
		b.WriteString(text)
	}
	if color {
		return b.String()
	}
	return strings.TrimRight(b.String(), " ")
}

// cutWidth is the beginning of a text that takes at most width columns, with … where something is left out.
func cutWidth(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	if width <= 0 {
		return ""
	}
	used, end := 0, 0
	clusters := uniseg.NewGraphemes(text)
	for clusters.Next() {
		if used += clusters.Width(); used > width-1 {
			break
		}
		_, end = clusters.Positions()
	}
	return text[:end] + "…"
}

// head is the environment, its health, and what passes through it.
func (f *topFrame) head(width int) []cells {
	st := &f.status
	word, tone := cmp.Or(st.State, "running"), plainText
	if h := st.Health; h != nil {
		word, tone = string(h.Status), healthStyle(h.Status)
		if !h.Since.IsZero() {
			word += " for " + age(f.now.Sub(h.Since))
		}
	}
	first := cells{{st.Environment, bold}, {"  ", plainText}, {"● " + word, tone}}
	if paused := f.paused(); paused > 0 {
		first = append(first, cell{"  " + plural(paused, "queue") + " paused", yellow})
	}
	backend := "embedded queue"
	if st.Backend == api.BackendSQS {
		backend = "Amazon SQS"
	}
	right := backend
	if !st.StartedAt.IsZero() {
		right += "  up " + age(f.now.Sub(st.StartedAt))
	}
	right += "  " + f.now.UTC().Format("15:04:05Z")
	used := 0
	for _, s := range first {
		used += uniseg.StringWidth(plain(s.text))
	}
	if gap := width - used - uniseg.StringWidth(right); gap > 1 {
		first = append(first, cell{strings.Repeat(" ", gap), plainText}, cell{right, faint})
	}
	lines := []cells{first, f.totals(width)}
	if f.lost != "" {
		lines = append(lines, cells{{"■ " + f.lost, red}})
	}
	return append(lines, nil)
}

func healthStyle(s health.Status) style {
	switch s {
	case health.Ok:
		return green
	case health.Info, health.Pending:
		return cyan
	case health.Warning:
		return yellow
	case health.Degraded, health.Severe:
		return red
	}
	return plainText
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
func (f *topFrame) totals(width int) cells {
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
	l := cells{{"in ", faint}, {rateText(c.In.Newest()) + spark(c.In), plainText},
		{"   out ", faint}, {rateText(c.Out.Newest()) + spark(c.Out), plainText}}
	if len(f.status.Workers) > 0 {
		l = append(l, cell{"   in work ", faint}, cell{fmt.Sprintf("%d of %d", flight, limit), plainText})
	}
	if p95, known := c.P95MS.Newest(); known {
		l = append(l, cell{"   p95 ", faint}, cell{shortDuration(p95), plainText})
	}
	if oldest, known := c.OldestSeconds.Newest(); known {
		l = append(l, cell{"   oldest ", faint}, cell{seconds(float64(oldest)), plainText})
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
func (f *topFrame) middle(width int) (lines []cells) {
	section := func(rows topTable) {
		if len(lines) > 0 {
			lines = append(lines, nil)
		}
		lines = append(lines, rows.lines(width)...)
	}
	if h := f.status.Health; h != nil {
		for _, cause := range h.Each() {
			lines = append(lines, cells{{"▲ ", healthStyle(cause.Status)}, {cause.Text, plainText}})
		}
		if len(h.Causes) == 0 {
			lines = append(lines, cells{{"Nothing needs you.", faint}})
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
	rows := topTable{{{"QUEUE", faint}, {"STATE", faint}, {"WAITING", faint}, {"IN FLIGHT", faint}, {"OLDEST", faint},
		{"IN/S", faint}, {"OUT/S", faint}, {"FAILING", faint}, {"WHY", faint}}}
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
		state, why, tone, failing := "-", "", plainText, "-"
		if w := workers[q.Name]; w != nil {
			state, why = w.State()
			tone = map[string]style{api.QueueRunning: green, api.QueueFailing: red}[state]
			tone = cmp.Or(tone, yellow)
			failing = fmt.Sprintf("%.0f%%", 100*w.FailingShare())
		} else if dead[q.Name] {
			if state = "Dead"; q.Ledger.Live > 0 {
				tone = yellow
			}
		}
		traffic := f.curves.Queues[q.Name]
		rows = append(rows, cells{{q.Name, plainText}, {state, tone}, {fmt.Sprint(q.Ledger.Visible), plainText},
			{fmt.Sprint(q.Ledger.InFlight), plainText}, {seconds(q.OldestSeconds), plainText},
			{perSecond(traffic.In.Newest()), plainText}, {perSecond(traffic.Out.Newest()), plainText}, {failing, plainText},
			{why, faint}})
	}
	return rows
}

func perSecond(v float32, known bool) string { return strings.TrimSuffix(rateText(v, known), "/s") }

func (f *topFrame) processes() topTable {
	rows := topTable{{{"PROCESS", faint}, {"STATE", faint}, {"PID", faint}, {"FOR", faint}, {"RESTARTS", faint},
		{"LAST EXIT", faint}}}
	for _, p := range f.status.App {
		tone, pid, lasts := yellow, "-", "-"
		if p.Ready {
			tone = green
		}
		if p.PID > 0 {
			pid = fmt.Sprint(p.PID)
		}
		if !p.Since.IsZero() {
			lasts = age(f.now.Sub(p.Since))
		}
		rows = append(rows, cells{{p.Name, plainText}, {p.State, tone}, {pid, plainText}, {lasts, plainText},
			{fmt.Sprint(p.Restarts), plainText}, {p.LastExit, plainText}})
	}
	return rows
}

func (f *topFrame) tasks(tasks []api.Task) topTable {
	rows := topTable{{{"TASK", faint}, {"STATE", faint}, {"LAST RUN", faint}, {"NEXT IN", faint}, {"WHY", faint}}}
	for i := range tasks {
		t := &tasks[i]
		last, next := "-", "-"
		if t.Last != nil {
			last = cmp.Or(t.Last.Outcome, t.Last.Skipped, "enqueued")
		}
		if len(t.Next) > 0 && !t.Paused {
			next = age(t.Next[0].Sub(f.now))
		}
		tone := map[string]style{api.TaskScheduled: green, api.TaskFailing: red}[t.State()]
		rows = append(rows, cells{{t.Name, plainText}, {t.State(), cmp.Or(tone, yellow)}, {last, plainText},
			{next, plainText}, {cmp.Or(t.Why(), t.Words), faint}})
	}
	return rows
}

func (f *topFrame) problems() topTable {
	rows := topTable{{{"FAILED IN", faint}, {"COUNT", faint}, {"LAST", faint}, {"REASON", faint}}}
	for _, p := range f.status.Problems[:min(len(f.status.Problems), 10)] {
		rows = append(rows, cells{{p.Queue, plainText}, {fmt.Sprint(p.Count), red}, {age(f.now.Sub(p.Last)), plainText},
			{p.Reason, plainText}})
	}
	return rows
}

// topTable is rows of cells below a heading. Columns whose cells are figures are aligned to the right.
type topTable []cells

const topGap = 2 // columns between cells

// lines are the rows with their cells padded. The first column, a name, gives way when the others need the room; the
// last one gets what is left.
func (t topTable) lines(width int) []cells {
	columns := len(t[0])
	widths := make([]int, columns)
	figures := make([]bool, columns)
	for i := range columns {
		figures[i] = i > 0
		for j, row := range t {
			widths[i] = max(widths[i], uniseg.StringWidth(plain(row[i].text)))
			figures[i] = figures[i] && (j == 0 || isFigure(row[i].text))
		}
	}
	rest := width
	for _, w := range widths[1 : columns-1] {
		rest -= w + topGap
	}
	widths[0] = max(min(widths[0], rest-topGap, 40), 8)
	all := make([]cells, len(t))
	for j, row := range t {
		for i, c := range row {
			text := plain(c.text)
			if i < columns-1 {
				text = cutWidth(text, widths[i])
				padding := strings.Repeat(" ", widths[i]-uniseg.StringWidth(text))
				if figures[i] {
					text = padding + text
				} else {
					text += padding
				}
				text += strings.Repeat(" ", topGap)
			}
			all[j] = append(all[j], cell{text, c.style})
		}
	}
	return all
}

// isFigure reports whether a cell holds a number, a share, an age or nothing.
func isFigure(text string) bool {
	return text == "-" || strings.Trim(text, "0123456789.%smhd") == ""
}
