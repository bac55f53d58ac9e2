package main

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

// styled is standard output for lines with colours; nil where there are none.
func styled(c *cli) io.Writer {
	// What is written through another writer, such as one that renames a folder, is escaped behind it.
	if w, ok := c.out.(*terminal.Writer); ok && c.color() {
		return &terminal.Writer{To: w.To, Colors: true}
	}
	return nil
}

// printCells prints one line.
func printCells(c *cli, l cells) error {
	w, color := io.Writer(c.out), false
	if s := styled(c); s != nil {
		w, color = s, true
	}
	_, err := fmt.Fprintln(w, l.render(math.MaxInt, color))
	return err
}

// printStyled prints rows in columns: headings and names faint, states in their colours.
func printStyled(w io.Writer, rows [][]string) error {
	heading := len(rows) > 0 && isHeading(rows[0])
	var widths []int
	for _, row := range rows {
		for i, text := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], uniseg.StringWidth(plain(text)))
		}
	}
	for n, row := range rows {
		var l cells
		for i, text := range row {
			as := plainText
			switch {
			case heading && n == 0, !heading && i == 0:
				as = faint
			case heading && i < len(rows[0]):
				as = stateStyle(rows[0][i], text)
			}
			l = append(l, cell{text, as})
			if gap := widths[i] - uniseg.StringWidth(plain(text)); i < len(row)-1 {
				l = append(l, cell{strings.Repeat(" ", gap+2), plainText})
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(l.render(math.MaxInt, true), " ")); err != nil {
			return err
		}
	}
	return nil
}

// isHeading reports whether a row names columns: those of facts begin with a name in small letters.
func isHeading(row []string) bool {
	return len(row) > 0 && row[0] == strings.ToUpper(row[0]) && row[0] != ""
}

// stateStyle is the colour of a cell by its words, in columns that hold states; other columns hold what others wrote.
func stateStyle(column, text string) style {
	switch column {
	case "STATE", "HEALTH", "READY", "OUTCOME", "NOTE", "STATUS":
	default:
		return plainText
	}
	first, _, _ := strings.Cut(strings.TrimRight(text, ":,;"), " ")
	switch strings.TrimRight(first, ":,;") {
	case "running", "ready", "live", "done", "yes":
		return green
	case "PAUSED", "draining", "starting", "stopping", "restarting":
		return yellow
	case "failed", "NOT", "ENQUEUEING", "unreached":
		return red
	case "no":
		if text == "no answer" || column == "READY" {
			return red
		}
	}
	return healthStyle(health.Status(text))
}

// readyStyle is the colour of an environment as a whole.
func readyStyle(st *api.Status) style {
	for i := range st.Workers {
		if st.Workers[i].Paused {
			return yellow
		}
	}
	if st.Ready {
		return green
	}
	return red
}

// printReport prints a status after a prefix, and a line for each cause.
func printReport(c *cli, prefix string, r *health.Report) error {
	first, causes, _ := strings.Cut(reportText(r), "\n")
	err := printCells(c, cells{{prefix, plainText}, {first, healthStyle(r.Status)}})
	if err == nil && causes != "" {
		_, err = fmt.Fprintln(c.out, causes)
	}
	return err
}
