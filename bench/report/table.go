package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

type table struct {
	name    string
	columns []string
	rows    []row
}

type row struct {
	texts []string
	cells []cell
}

// cell is a figure with its format, such as "%s µs". The value is multiplied by scale; 0 means 1. A cell without a
// benchmark contains the format itself.
type cell struct {
	benchmark, unit, format string
	scale                   float64
}

func (t *table) markdown(all *results) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.columns)
	b.WriteString(strings.Repeat("|---", len(t.columns)) + "|\n")

	for _, r := range t.rows {
		cells := append([]string{}, r.texts...)
		for _, c := range r.cells {
			cells = append(cells, c.text(all))
		}
		line(cells)
	}
	return b.String()
}

func everything(all *results, benchmark string) (t table, ok bool) {
	parts, units := map[string]bool{}, map[string]bool{}
	for f := range all.samples {
		if (f.benchmark == benchmark || strings.HasPrefix(f.benchmark, benchmark+"/")) && f.unit != "ns/op" {
			parts[f.benchmark], units[f.unit] = true, true
		}
	}

	t.columns = append([]string{benchmark}, slices.Sorted(maps.Keys(units))...)
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		r := row{texts: []string{strings.TrimPrefix(part[len(benchmark):], "/")}}
		for _, unit := range t.columns[1:] {
			r.cells = append(r.cells, cell{part, unit, "%s", 0})
		}
		t.rows = append(t.rows, r)
	}
	return t, len(parts) > 0
}

// A cell shows the range of a sample if it exceeds this share of its median.
const wide = 0.2

func (c *cell) text(all *results) string {
	s := c.sample(all)
	switch {
	case c.benchmark == "":
		return c.format
	case len(s) == 0:
		return "not measured"
	case s.highest()-s.lowest() <= wide*s.median():
		return fmt.Sprintf(c.format, number(s.median()))
	}
	return fmt.Sprintf(c.format, number(s.median())) + fmt.Sprintf(" (%s to %s)", number(s.lowest()), number(s.highest()))
}

func (c *cell) sample(all *results) (scaled sample) {
	for _, v := range all.samples[figure{c.benchmark, c.unit}] {
		if c.scale != 0 {
			v *= c.scale
		}
		scaled = append(scaled, v)
	}
	return scaled
}

// number formats a value with three significant digits or, from 1,000 on, as an integer with commas.
func number(v float64) string {
	if math.Abs(v) < 999.5 {
		text := strconv.FormatFloat(v, 'g', 3, 64)
		if strings.Contains(text, "e") {
			text = strconv.FormatFloat(v, 'f', 5, 64)
		}
		return text
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
