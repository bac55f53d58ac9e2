package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/observe/health"
	"tendril/internal/observe/series"
)

type topFrame struct {
	now    time.Time
	status api.Status
	curves series.Curves
	// lost is the reason the values are outdated, or "".
	lost string
	// footer is a question or a result; "" shows the keys.
	footer string
	scroll int // lines of the middle part above the visible ones
	color  bool
}

const topKeys = "q quit   p pause   ↑ ↓ scroll"

// lines returns lines of at most width columns, without control sequences in external text. If height is 0, it returns
// all lines except the footer.
func (f *topFrame) lines(width, height int) []string {
	head := f.head(width)
	middle := f.middle(width)
	if height > 0 {
		visible, below := base.Window(middle, height-len(head)-1, &f.scroll)
		middle = append(visible, f.footerLine(below))
		head = head[:min(len(head), max(height-1, 0))]
	}

	all := append(head, middle...)
	shown := make([]string, len(all))
	for i, l := range all {
		shown[i] = l.Render(width, f.color)
	}

	return shown
}

func (f *topFrame) footerLine(below int) base.Cells {
	footer := base.Cells{base.Faint.Text(topKeys)}
	if f.footer != "" {
		footer = base.Cells{base.Bold.Text(f.footer)}
	}
	if below > 0 {
		footer = append(footer, base.PlainText.Text(fmt.Sprintf("   %d more ↓", below)))
	}
	return footer
}

func (f *topFrame) head(width int) []base.Cells {
	lines := []base.Cells{f.titleLine(width), f.totals(width)}
	if f.lost != "" {
		lines = append(lines, base.Cells{base.Red.Text("■ " + f.lost)})
	}
	return append(lines, nil)
}

func (f *topFrame) titleLine(width int) base.Cells {
	left := f.healthCells()
	used := 0
	for _, s := range left {
		used += uniseg.StringWidth(base.Plain(s.Text))
	}

	right := f.status.QueuesAt()
	if !f.status.StartedAt.IsZero() {
		right += "  up " + base.Age(f.now.Sub(f.status.StartedAt))
	}
	right += "  " + f.now.UTC().Format("15:04:05Z")

	gap := width - used - uniseg.StringWidth(right)
	if gap <= 1 {
		return left
	}
	return append(left, base.PlainText.Text(strings.Repeat(" ", gap)), base.Faint.Text(right))
}

func (f *topFrame) healthCells() base.Cells {
	cells := base.Cells{base.Bold.Text(f.status.Environment), base.PlainText.Text("  ")}
	if e := f.environment(); e != nil {
		shown := string(e.Status)
		if n := e.Total(); n > 0 {
			shown += fmt.Sprintf(" (%d instances)", n)
		}
		cells = append(cells, base.HealthStyle(e.Status).Text("● "+shown), base.PlainText.Text("  this instance "))
	}

	word := cmp.Or(f.status.State, "running")
	tone := base.PlainText
	if h := f.status.Health; h != nil {
		word = string(h.Status)
		tone = base.HealthStyle(h.Status)
		if !h.Since.IsZero() {
			word += " for " + base.Age(f.now.Sub(h.Since))
		}
	}
	cells = append(cells, tone.Text("● "+word))

	if paused := f.paused(); paused > 0 {
		cells = append(cells, base.Yellow.Text("  "+base.Plural(paused, "queue")+" paused"))
	}
	return cells
}

func (f *topFrame) environment() *health.Environment {
	if h := f.status.Health; h != nil && h.Environment.IsShared() {
		return h.Environment
	}
	return nil
}

func (f *topFrame) paused() (n int) {
	for i := range f.status.Workers {
		if f.status.Workers[i].Paused {
			n++
		}
	}
	return n
}

func (f *topFrame) totals(width int) base.Cells {
	c := &f.curves.Series
	spark := func(values series.Values) string {
		if width < wideTop {
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

	l := base.Cells{base.Faint.Text("in "), base.PlainText.Text(rateText(c.In.Newest()) + spark(c.In)),
		base.Faint.Text("   out "), base.PlainText.Text(rateText(c.Out.Newest()) + spark(c.Out))}
	if len(f.status.Workers) > 0 {
		l = append(l, base.Faint.Text("   in flight "), base.PlainText.Text(fmt.Sprintf("%d of %d", flight, limit)))
	}

	if p95, known := c.P95MS.Newest(); known {
		l = append(l, base.Faint.Text("   p95 "), base.PlainText.Text(shortDuration(p95)))
	}

	if oldest, known := c.OldestSeconds.Newest(); known {
		l = append(l, base.Faint.Text("   oldest "), base.PlainText.Text(base.Seconds(float64(oldest))))
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
	if ms < 999.5 { // above, the text would be 1000 ms
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

func sparkline(values series.Values, columns int) string {
	values = values[max(len(values)-columns, 0):]
	most := float32(0)
	for _, v := range values {
		if !isUnknown(v) {
			most = max(most, v)
		}
	}

	bars := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values {
		switch {
		case isUnknown(v):
			b.WriteByte(' ')
		case most == 0:
			b.WriteRune(bars[0])
		default:
			b.WriteRune(bars[int(v/most*float32(len(bars)-1)+0.5)])
		}
	}

	return b.String()
}

func isUnknown(v float32) bool { return math.IsNaN(float64(v)) }

func (f *topFrame) middle(width int) (lines []base.Cells) {
	if e := f.environment(); e != nil {
		lines = append(lines, base.Cells{base.Faint.Text("environment: " + e.Counts())})
		for i := range e.Causes {
			lines = append(lines, f.cause(&e.Causes[i].Cause, sharedText(&e.Causes[i]), width)...)
		}
		lines = append(lines, base.Cells{base.Faint.Text("this instance:")})
	}
	if h := f.status.Health; h != nil {
		for _, cause := range h.Each() {
			lines = append(lines, f.cause(&cause, cause.Text, width)...)
		}
		if len(h.Each()) == 0 {
			lines = append(lines, base.Cells{base.Faint.Text("Nothing needs attention.")})
		}
	}

	for _, rows := range [][][]string{f.queues(width), f.processes(), f.tasks(f.status.Tasks.First(5)), f.problems()} {
		if len(rows) == 1 {
			continue
		}
		if len(lines) > 0 {
			lines = append(lines, nil)
		}
		lines = append(lines, tableLines(rows, width)...)
	}
	return lines
}

func (f *topFrame) cause(c *health.Cause, text string, width int) (lines []base.Cells) {
	head := "▲ " + c.Head(f.now) + ":"
	line, used := base.Cells{base.HealthStyle(c.Status).Text(head)}, uniseg.StringWidth(head)
	for word := range strings.FieldsSeq(text) {
		word = " " + word
		n := uniseg.StringWidth(base.Plain(word))
		if used+n > width {
			lines = append(lines, line)
			line, used = base.Cells{base.PlainText.Text(" ")}, 1
		}
		line, used = append(line, base.PlainText.Text(word)), used+n
	}
	lines = append(lines, line)
	if c.Remedy != "" {
		lines = append(lines, base.Cells{base.Faint.Text("  hint: " + c.Remedy)})
	}
	return lines
}

func (f *topFrame) queues(width int) [][]string {
	rows := [][]string{{"QUEUE", "STATE", "WAITING", "DRAINS IN", "IN FLIGHT", "LONGEST", "IN/S", "OUT/S", "FAILING", "WHY"}}
	workers := map[string]*api.Worker{}
	for i := range f.status.Workers {
		workers[f.status.Workers[i].Queue] = &f.status.Workers[i]
	}

	dead := api.DeadLetterQueues(f.status.Queues)
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
	for i := range queues {
		rows = append(rows, f.queueRow(&queues[i], workers[queues[i].Name], dead[queues[i].Name]))
	}

	if width < wideTop {
		rows = base.WithoutColumn(base.WithoutColumn(rows, "LONGEST"), "DRAINS IN")
	}
	return rows
}

func (f *topFrame) queueRow(q *api.Queue, w *api.Worker, dead bool) []string {
	state, failing := "-", "-"
	why := ""
	switch {
	case w != nil:
		state = w.State
		failing = fmt.Sprintf("%.0f%%", 100*w.FailingShare())
		why = w.Why
	case dead && q.Ledger.Live > 0:
		state = "Dead"
	case dead:
		state = "Empty"
	}

	traffic := f.curves.Queues[q.Name]
	return []string{q.Name, state, fmt.Sprint(q.Ledger.Visible), base.KnownSeconds(q.DrainSeconds),
		fmt.Sprint(q.Ledger.InFlight), base.KnownSeconds(q.LongestDeliverySeconds), perSecond(traffic.In.Newest()),
		perSecond(traffic.Out.Newest()), failing, why}
}

// wideTop is the minimum width for sparklines and all columns.
const wideTop = 110

func perSecond(v float32, known bool) string { return strings.TrimSuffix(rateText(v, known), "/s") }

func (f *topFrame) processes() [][]string {
	rows := [][]string{{"PROCESS", "STATE", "PID", "FOR", "RESTARTS", "LAST EXIT"}}
	for _, p := range f.status.App {
		state := p.State
		pid, lasts := "-", "-"
		if state == "running" && !p.Ready {
			state = "not ready"
		}
		if p.PID > 0 {
			pid = fmt.Sprint(p.PID)
		}
		if !p.Since.IsZero() {
			lasts = base.Age(f.now.Sub(p.Since))
		}
		rows = append(rows, []string{p.Name, state, pid, lasts, fmt.Sprint(p.Restarts), p.LastExit})
	}
	return rows
}

func (f *topFrame) tasks(tasks []api.Task) [][]string {
	rows := [][]string{{"TASK", "STATE", "LAST RUN", "NEXT IN", "WHY"}}
	for i := range tasks {
		t := &tasks[i]
		last, next := "-", "-"
		if t.Last != nil {
			last = cmp.Or(t.Last.Outcome, t.Last.Skipped, "enqueued")
		}
		if len(t.Next) > 0 && !t.Paused {
			next = base.Age(t.Next[0].Sub(f.now))
		}
		rows = append(rows, []string{t.Name, t.State(), last, next, cmp.Or(t.Why(), t.Words)})
	}
	return rows
}

func (f *topFrame) problems() [][]string {
	rows := [][]string{{"QUEUE", "FAILED", "FIRST", "LAST", "REASON"}}
	for _, p := range f.status.Problems[:min(len(f.status.Problems), 10)] {
		rows = append(rows, []string{p.Queue, fmt.Sprint(p.Count), base.Age(f.now.Sub(p.First)), base.Age(f.now.Sub(p.Last)),
			p.Reason})
	}
	return rows
}

const (
	topGap = 2

	minFirstColumn = 8
	maxFirstColumn = 40
)

// tableLines cuts the first column if necessary. A last cell that does not fit gets its own line.
func tableLines(rows [][]string, width int) []base.Cells {
	widths := base.ColumnWidths(rows)
	last := len(widths) - 1
	room := width - topGap
	for _, w := range widths[1:last] {
		room -= w + topGap
	}
	widths[0] = max(min(widths[0], room, maxFirstColumn), minFirstColumn)

	lastRoom := width
	figures := make([]bool, last)
	for column, w := range widths[:last] {
		lastRoom -= w + topGap
		figures[column] = hasFigures(rows, column)
	}

	var lines []base.Cells
	for i, row := range rows {
		var line base.Cells
		for column, w := range widths[:last] {
			text := pad(base.Plain(row[column]), w, figures[column]) + strings.Repeat(" ", topGap)
			line = append(line, base.CellStyle(rows, i, column).Text(text))
		}

		text, style := base.Plain(row[last]), base.CellStyle(rows, i, last)
		if i == 0 || text == "" || uniseg.StringWidth(text) <= lastRoom {
			lines = append(lines, append(line, style.Text(text)))
			continue
		}
		lines = append(lines, line, base.Cells{style.Text("    " + text)})
	}
	return lines
}

func hasFigures(rows [][]string, column int) bool {
	isText := func(row []string) bool { return !isFigure(row[column]) }
	return column > 0 && !slices.ContainsFunc(rows[1:], isText)
}

func pad(text string, width int, alignRight bool) string {
	text = base.CutWidth(text, width)
	padding := strings.Repeat(" ", width-uniseg.StringWidth(text))
	if alignRight {
		return padding + text
	}
	return text + padding
}

func isFigure(text string) bool {
	return text == "-" || strings.Trim(text, "0123456789.%smhd") == ""
}
