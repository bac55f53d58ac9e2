package base

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/rivo/uniseg"

	"tendril/api"
	"tendril/internal/host/terminal"
	"tendril/internal/observe/health"
)

func styledOut(c *CLI) (w io.Writer, color bool) {
	// Other writers, such as renaming, escape control sequences.
	if w, ok := c.Out.(*terminal.Writer); ok && c.Color() {
		return &terminal.Writer{To: w.To, Colors: true}, true
	}
	return c.Out, false
}

// PrintCells prints cells as one line.
func PrintCells(c *CLI, l Cells) error {
	w, color := styledOut(c)
	_, err := fmt.Fprintln(w, l.Render(math.MaxInt, color))
	return err
}

// PrintTable prints rows in columns. The first row is the heading.
func (c *CLI) PrintTable(rows [][]string) error {
	w, color := styledOut(c)
	return printRows(w, rows, CellStyle, color)
}

// PrintFacts prints rows of a name and a value.
func (c *CLI) PrintFacts(rows [][]string) error {
	w, color := styledOut(c)
	return printRows(w, rows, factStyle, color)
}

func printRows(w io.Writer, rows [][]string, style func(rows [][]string, row, column int) Style, color bool) error {
	widths := ColumnWidths(rows)
	for n, row := range rows {
		var l Cells
		for i, text := range row {
			l = append(l, style(rows, n, i).Text(text))
			if i < len(row)-1 {
				gap := widths[i] - uniseg.StringWidth(Plain(text)) + 2
				l = append(l, PlainText.Text(strings.Repeat(" ", gap)))
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(l.Render(math.MaxInt, color), " ")); err != nil {
			return err
		}
	}
	return nil
}

// ColumnWidths returns the widths of a table's columns on a terminal.
func ColumnWidths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, text := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], uniseg.StringWidth(Plain(text)))
		}
	}
	return widths
}

// CellStyle dims the heading, which is the first row, and colors states.
func CellStyle(rows [][]string, row, column int) Style {
	if row == 0 {
		return Faint
	}
	return stateStyle(rows[0][column], rows[row][column])
}

func factStyle(_ [][]string, _, column int) Style {
	if column == 0 {
		return Faint
	}
	return PlainText
}

// stateStyle colors only columns with states, because others may contain external text.
func stateStyle(column, text string) Style {
	switch column {
	case "WHY":
		return Faint
	case "FAILED":
		return Red
	case "STATE", "HEALTH", "READY", "OUTCOME", "NOTE", "STATUS":
	default:
		return PlainText
	}

	first, _, _ := strings.Cut(text, " ")
	switch strings.TrimRight(first, ":,;") {
	case "running", "ready", "live", "done", "yes", api.QueueRunning, api.TaskScheduled:
		return Green
	case "PAUSED", "draining", "starting", "stopping", "restarting", "not", "Dead", api.QueuePaused, api.QueueWaiting:
		return Yellow
	case "failed", "NOT", "ENQUEUEING", "unreached", api.QueueFailing:
		return Red
	case "no":
		if text == "no response" || column == "READY" {
			return Red
		}
	}

	return HealthStyle(health.Status(text))
}

// ReadyStyle returns the color of an environment's state.
func ReadyStyle(st *api.Status) Style {
	for i := range st.Workers {
		if st.Workers[i].Paused {
			return Yellow
		}
	}
	if st.Ready {
		return Green
	}
	return Red
}

// Style is the SGR parameter of a text style; "" for plain text.
type Style string

// Styles of names, headings and states.
const (
	PlainText Style = ""
	Bold      Style = "1"
	Faint     Style = "2"
	Red       Style = "31"
	Green     Style = "32"
	Yellow    Style = "33"

	cyan Style = "36"
)

// Cell is a text in one style.
type Cell struct {
	Text  string
	Style Style
}

// Cells is a line of text in several styles.
type Cells []Cell

// Render returns the line as terminal output.
func (l Cells) Render(width int, color bool) string {
	var b strings.Builder
	for _, s := range l {
		text := CutWidth(Plain(s.Text), width)
		width -= uniseg.StringWidth(text)
		if color && s.Style != PlainText && text != "" {
			text = "\x1b[" + string(s.Style) + "m" + text + "\x1b[0m"
		}
		b.WriteString(text)
	}
	if color {
		return b.String()
	}
	return strings.TrimRight(b.String(), " ")
}

// CutWidth truncates text to width columns, ending it with "…".
func CutWidth(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	if width <= 0 {
		return ""
	}
	used, end := 0, 0
	clusters := uniseg.NewGraphemes(text)
	for clusters.Next() {
		used += clusters.Width()
		if used > width-1 {
			break
		}
		_, end = clusters.Positions()
	}
	return text[:end] + "…"
}

// HealthStyle returns the color of a health status.
func HealthStyle(s health.Status) Style {
	switch s {
	case health.Ok:
		return Green
	case health.Info, health.Pending:
		return cyan
	case health.Warning:
		return Yellow
	case health.Degraded, health.Severe:
		return Red
	}
	return PlainText
}

// Text returns a cell in this style.
func (s Style) Text(text string) Cell { return Cell{text, s} }
