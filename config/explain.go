package config

import (
	"fmt"
	"strings"
)

// Explanation is everything about one option.
type Explanation struct {
	Option Option
	// Value is the value in force, "" for none, and From is where it is from.
	Value string
	From  Origin
	// Chain holds every layer's value, the weakest first; the last one is in
	// force.
	Chain []Setting
}

// Explain tells about the option of that name, which may be any of its names.
// The error says which names are near an unknown one.
func (c *Config) Explain(name string) (*Explanation, error) {
	o, found := Lookup(name)
	if !found {
		return nil, unknownOption(name)
	}
	chain := c.chains[o.Name]
	last := chain[len(chain)-1]
	return &Explanation{Option: o, Value: last.Value, From: last.Origin, Chain: append([]Setting(nil), chain...)}, nil
}

// unknownOption says that there is no such option, and which may be meant.
func unknownOption(name string) error {
	var known []string
	for _, o := range Options() {
		known = append(known, o.Name)
		known = append(known, o.Aliases...)
		if o.Beanstalk != "" {
			known = append(known, o.Beanstalk)
		}
	}
	if near := nearest(strings.TrimLeft(name, "-"), known); len(near) > 0 {
		return fmt.Errorf("%s is no option: did you mean %s?", shown(name), orList(near))
	}
	return fmt.Errorf("%s is no option: docs/options.md lists them all", shown(name))
}

// String returns the explanation as a few lines of text, without an end of line.
func (e *Explanation) String() string {
	o := &e.Option
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  %s\n\n", o.Name, o.Help)
	row := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-18s %s\n", label, text)
		}
	}
	row("value", orNone(readable(o.Kind, e.Value))+" ("+e.From.String()+")")
	row("default", readable(o.Kind, o.defaultText()))
	row("allowed", o.Allowed+unitNote(o.Kind))
	row("flag", "--"+strings.Join(append([]string{o.Name}, o.Aliases...), ", --"))
	row("variable", strings.Join(append([]string{o.Variable}, o.OtherVariables...), ", "))
	row("key", o.Key)
	row("Elastic Beanstalk", o.Beanstalk)
	row("aws-sqsd", o.DaemonKey)
	b.WriteString("\n  set by, the last one counts:\n")
	for _, s := range e.Chain {
		where := ""
		if s.Where != "" {
			where = " (" + s.Where + ")"
		}
		fmt.Fprintf(&b, "    %-12s %s%s\n", s.Layer, orNone(s.Value), where)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// readable adds days, hours and minutes to a number of seconds that nobody
// can read.
func readable(k Kind, text string) string {
	d, err := parseDuration(text)
	if k != Duration || err != nil || d < 120e9 || d%60e9 != 0 {
		return text
	}
	minutes := int64(d / 60e9)
	switch {
	case minutes%(24*60) == 0:
		return fmt.Sprintf("%s, that is %s", text, plural(minutes/(24*60), "day"))
	case minutes%60 == 0:
		return fmt.Sprintf("%s, that is %s", text, plural(minutes/60, "hour"))
	default:
		return fmt.Sprintf("%s, that is %s", text, plural(minutes, "minute"))
	}
}

func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// unitNote says how a value without a unit is read.
func unitNote(k Kind) string {
	switch k {
	case Duration:
		return "; a bare number is seconds"
	case Size:
		return "; a bare number is bytes"
	}
	return ""
}
