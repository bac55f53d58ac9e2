package base

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/config/yamlfile"
	"tendril/internal/host/terminal"
)

// Format is an output format, the value of -o.
type Format string

// The output formats.
const (
	AsTable Format = "table"
	AsJSON  Format = "json"
	// AsYAML uses the same names as JSON.
	AsYAML Format = "yaml"
	// AsName prints one identifier per line.
	AsName Format = "name"
)

// Formats are the values of -o.
var Formats = []string{string(AsTable), string(AsJSON), string(AsYAML), string(AsName)}

func (f *Format) String() string { return string(*f) }

// Type returns the value's placeholder in the help.
func (f *Format) Type() string { return "format" }

// Set parses the flag's value.
func (f *Format) Set(text string) error {
	if !slices.Contains(Formats, text) {
		return fmt.Errorf("invalid output format %q: use table, json, yaml or name", text)
	}
	*f = Format(text)
	return nil
}

// OutputFlag is the long name of -o.
const OutputFlag = "output"

// AddOutput adds the flag -o.
func AddOutput(cmd *cobra.Command) *Format {
	f := AsTable
	cmd.Flags().VarP(&f, OutputFlag, "o", "Output format: table, json, yaml, or name for one identifier per line.")
	Complete(cmd, OutputFlag, Formats...)
	return &f
}

func formatOf(cmd *cobra.Command) Format {
	if flag := cmd.Flags().Lookup(OutputFlag); flag != nil {
		return *flag.Value.(*Format)
	}
	return AsTable
}

type view[T any] struct {
	show  func(T) error
	names func(T) []string
}

// Print prints v as JSON or YAML, prints names, or calls show, depending on the format.
func (f Format) Print(c *CLI, v any, names []string, show func() error) error {
	switch f {
	case AsJSON:
		return c.PrintJSON(v)
	case AsYAML:
		return c.printYAML(v)
	case AsName:
		return printNames(c.Out, names...)
	}
	return show()
}

// PrintDone reports a finished change: v as JSON or YAML, name, or text on standard error.
func (f Format) PrintDone(c *CLI, v any, name, text string) error {
	return f.Print(c, v, []string{name}, func() error {
		_, err := c.PrintErrln(text)
		return err
	})
}

// PrintEach prints one item of a stream: as text, a line of JSON, a YAML document, or a name.
func (f Format) PrintEach(c *CLI, v any, name, text string) error {
	switch f {
	case AsJSON:
		return PrintLineJSON(c.DataOut(), v)
	case AsYAML:
		if _, err := fmt.Fprintln(c.DataOut(), "---"); err != nil {
			return err
		}
		return c.printYAML(v)
	case AsName:
		return printNames(c.Out, name)
	}
	_, err := c.Println(text)
	return err
}

func printNames(w io.Writer, names ...string) error {
	for _, name := range names {
		if name == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, Plain(name)); err != nil {
			return err
		}
	}
	return nil
}

// Named returns a function that lists the identifiers of a slice's elements.
func Named[E any](name func(*E) string) func([]E) []string {
	return func(all []E) (names []string) {
		for i := range all {
			names = append(names, name(&all[i]))
		}
		return names
	}
}

// PrintJSON prints a value as indented JSON.
func (c *CLI) PrintJSON(v any) error {
	return encodeJSON(c.DataOut(), v, "  ")
}

// IndentedJSON returns v as indented JSON, with a final newline.
func IndentedJSON(v any) (string, error) {
	var b strings.Builder
	err := encodeJSON(&b, v, "  ")
	return b.String(), err
}

func encodeJSON(w io.Writer, v any, indent string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	return enc.Encode(v)
}

func (c *CLI) printYAML(v any) error {
	text, err := AsYAMLText(v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(c.DataOut(), text)
	return err
}

// AsYAMLText returns v as YAML, with the names and values of its JSON.
func AsYAMLText(v any) (string, error) {
	data, err := json.Marshal(v)
	if err == nil {
		data, err = yamlfile.FromJSON(data)
	}
	return string(data), err
}

// PrintLineJSON writes a value as one line of JSON.
func PrintLineJSON(w io.Writer, v any) error { return encodeJSON(w, v, "") }

// Table is a table of cells.
type Table [][]string

// Add appends a row of two cells, unless value is empty.
func (t *Table) Add(name, value string) {
	if value != "" {
		*t = append(*t, []string{name, value})
	}
}

// Plain escapes unprintable characters, for a single line on a terminal.
func Plain(text string) string { return terminal.Plain(text, false) }

// Preview returns text on one line. After limit characters, it is truncated and followed by its size.
func Preview(text string, limit int) string {
	short := Plain(cutRunes(text, limit+1))
	if utf8.RuneCountInString(short) <= limit {
		return short
	}
	return fmt.Sprintf("%s… (%s)", cutRunes(short, limit-1), Size(len(text)))
}

func cutRunes(text string, n int) string {
	for i := range text {
		n--
		if n < 0 {
			return text[:i]
		}
	}
	return text
}

// Size formats a number of bytes.
func Size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}

// Age formats a duration in its largest unit.
func Age(d time.Duration) string {
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

// Since formats the age of a time, or returns "-" for the zero time.
func Since(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return Age(time.Since(t))
}

// Plural formats a number with its noun, such as "1 message" or "2 messages".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Summary prints how many messages were processed, unless an error ended the command before the first one, or the
// reader is gone. It returns err.
func (c *CLI) Summary(what string, n int, err error) error {
	if err == nil || n > 0 && !errors.Is(err, errReaderGone) {
		c.PrintErrf("%s %s\n", Plural(n, "message"), what)
	}
	return err
}

// Position formats a position in a file. Line 0 means the whole file.
func Position(file string, line int) string { return Plain(yamlfile.Place(file, line, 0)) }

// Stamp formats the time of a log line or event, in UTC.
func Stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05Z") }

// Moment returns a time in the local zone with its age, or "" for the zero time.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	distance := Since(t) + " ago"
	if d := time.Until(t); d > 0 {
		distance = "in " + Age(d)
	}
	return t.Local().Format(time.DateTime) + " (" + distance + ")"
}

// Seconds formats a number of seconds in its largest unit.
func Seconds(s float64) string { return Age(time.Duration(s * float64(time.Second))) }

// KnownSeconds is like [Seconds], but returns "-" for 0.
func KnownSeconds(s float64) string {
	if s == 0 {
		return "-"
	}
	return Seconds(s)
}

// PrintSection prints a table after an empty line.
func (c *CLI) PrintSection(rows [][]string) error {
	fmt.Fprintln(c.Out)
	return c.PrintTable(rows)
}

// WithoutColumn removes the column with a heading from a table.
func WithoutColumn(rows [][]string, heading string) [][]string {
	column := slices.Index(rows[0], heading)
	for i := range rows {
		rows[i] = slices.Delete(rows[i], column, column+1)
	}
	return rows
}

// QueueText returns why a queue's messages wait, or "".
func QueueText(p *api.Progress) string {
	if p.Paused {
		return strings.TrimSpace("PAUSED " + Plain(p.Why))
	}
	return Plain(p.Why)
}

// List determines how values are listed: as the rows of a table, and by name.
type List[T any] struct {
	Heading []string
	Row     func(*T) []string
	Name    func(*T) string
	// Empty is printed to standard error instead of an empty table.
	Empty string
}

// View returns a view that prints the list and then calls the functions in below.
func (l List[T]) View(c *CLI, below ...func([]T) error) view[[]T] {
	show := func(all []T) error {
		if len(all) == 0 && l.Empty != "" {
			c.PrintErrln(l.Empty)
			return nil
		}

		if err := c.PrintTable(l.Table(all)); err != nil {
			return err
		}
		for _, print := range below {
			if err := print(all); err != nil {
				return err
			}
		}
		return nil
	}
	return view[[]T]{show, Named(l.Name)}
}

// Table returns the heading and rows of the list.
func (l List[T]) Table(all []T) [][]string {
	rows := [][]string{l.Heading}
	for i := range all {
		rows = append(rows, l.Row(&all[i]))
	}
	return rows
}

// ViewOf returns a view with the given functions.
func ViewOf[T any](show func(T) error, names func(T) []string) view[T] {
	return view[T]{show, names}
}

// Clock formats a time in the named zone, or in its own zone if the name is unknown.
func Clock(at time.Time, zone string) string {
	if at.IsZero() {
		return "-"
	}
	if place, err := time.LoadLocation(zone); err == nil {
		at = at.In(place)
	}
	layout := "2006-01-02 15:04 MST"
	if at.Second() != 0 {
		layout = "2006-01-02 15:04:05 MST"
	}
	return at.Format(layout)
}
