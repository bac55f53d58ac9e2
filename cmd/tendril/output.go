package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"tendril/internal/config/yamlfile"
	"tendril/internal/host/terminal"
)

// format is how a reading verb prints its result.
type format string

const (
	asTable format = "table" // for people
	asJSON  format = "json"
	asYAML  format = "yaml"
	asName  format = "name" // one identifier per line
)

// formats are the values of -o.
var formats = []string{string(asTable), string(asJSON), string(asYAML), string(asName)}

// String, Set and Type make it a flag that takes nothing else.
func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "format" }
func (f *format) Set(text string) error {
	if !slices.Contains(formats, text) {
		return fmt.Errorf("%q is not an output format: use table, json, yaml or name", text)
	}
	*f = format(text)
	return nil
}

const outputFlag = "output"

// addOutput gives a verb the flag -o.
func addOutput(cmd *cobra.Command) *format {
	f := asTable
	cmd.Flags().VarP(&f, outputFlag, "o", "Output format: table, json, yaml, or name for one identifier per line.")
	complete(cmd, outputFlag, formats...)
	return &f
}

// formatOf is the value of a verb's -o; that for people where it has none.
func formatOf(cmd *cobra.Command) format {
	if flag := cmd.Flags().Lookup(outputFlag); flag != nil {
		if f, ok := flag.Value.(*format); ok {
			return *f
		}
	}
	return asTable
}

// view shows values of a type: to people, and as the identifiers of what is in them.
type view[T any] struct {
	show  func(T) error
	names func(T) []string
}

// print prints a value: its JSON, the same as YAML, its names, or what show shows to people.
func (f format) print(c *cli, v any, names []string, show func() error) error {
	switch f {
	case asJSON:
		return c.printJSON(v)
	case asYAML:
		return c.printYAML(v)
	case asName:
		return printNames(c.out, names...)
	}
	return show()
}

// printEach prints one of several values that come one after the other, such as events: as text, as a line of JSON, as
// a document of YAML, or by its name.
func (f format) printEach(c *cli, v any, name, text string) error {
	switch f {
	case asJSON:
		return printLineJSON(c.programs(), v)
	case asYAML:
		if _, err := fmt.Fprintln(c.programs(), "---"); err != nil {
			return err
		}
		return c.printYAML(v)
	case asName:
		return printNames(c.out, name)
	}
	_, err := fmt.Fprintln(c.out, text)
	return err
}

// printNames prints one identifier per line; empty ones are left out.
func printNames(w io.Writer, names ...string) error {
	for _, name := range names {
		if name == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, plain(name)); err != nil {
			return err
		}
	}
	return nil
}

// named returns a function that lists the identifiers of some values.
func named[E any](name func(*E) string) func([]E) []string {
	return func(all []E) (names []string) {
		for i := range all {
			names = append(names, name(&all[i]))
		}
		return names
	}
}

func (c *cli) printJSON(v any) error {
	text, err := indentedJSON(v)
	if err == nil {
		_, err = io.WriteString(c.programs(), text)
	}
	return err
}

// indentedJSON is what printJSON prints.
func indentedJSON(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.String(), err
}

func (c *cli) printYAML(v any) error {
	text, err := asYAMLText(v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(c.programs(), text)
	return err
}

// asYAMLText is the JSON of a value as YAML.
func asYAMLText(v any) (string, error) {
	data, err := json.Marshal(v)
	if err == nil {
		data, err = yamlfile.FromJSON(data)
	}
	return string(data), err
}

func printLineJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

type table [][]string

// add appends a row of two cells, unless the second one is empty.
func (t *table) add(name, value string) {
	if value != "" {
		*t = append(*t, []string{name, value})
	}
}

// printTable writes rows in columns; the first row is the heading.
func (c *cli) printTable(rows [][]string) error {
	if w := styled(c); w != nil {
		return printStyled(w, rows)
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = plain(cell)
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	return w.Flush()
}

// plain makes text safe for one line on a terminal: what is not printable is escaped.
func plain(text string) string { return terminal.Plain(text, false) }

// preview is the beginning of a text on one line, at most limit characters.
func preview(text string, limit int) string {
	short := plain(cutRunes(text, limit+1))
	if utf8.RuneCountInString(short) <= limit {
		return short
	}
	return fmt.Sprintf("%s… (%s)", cutRunes(short, limit-1), size(len(text)))
}

func cutRunes(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// size is a number of bytes for people.
func size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}

// age is a duration for people, in its largest unit.
func age(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// since is the age of a moment; "-" for the zero time.
func since(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return age(time.Since(t))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// summary prints how many messages an act reached, also before an error.
func (c *cli) summary(what string, n int, err error) error {
	if err == nil || n > 0 && !errors.Is(err, errReaderGone) {
		fmt.Fprintf(c.err, "%s %s\n", plural(n, "message"), what)
	}
	return err
}

// position is a place in a file; line 0 is the file as a whole.
func position(file string, line int) string { return plain(yamlfile.Place(file, line, 0)) }

// afterColon is the last part of an ARN: the queue's name.
func afterColon(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }
