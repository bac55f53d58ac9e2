package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Explanation is everything about one option.
type Explanation struct {
	Option Option
	// Value is the value in force, "" for none, and From is where it is from.
	Value string
	From  Origin
	// Chain holds every layer's value, the weakest first; the last one is in force.
	Chain []Setting
	// Queues holds, for the option queues, what is in force for each; else nil.
	Queues []queueExplanation
}

type queueExplanation struct {
	// Name is the queue's name.
	Name string
	// Settings are its settings, in the order of the table.
	Settings []queueSetting
}

type queueSetting struct {
	// Key is the key in tendril.yaml, Value what is in force, "" for none.
	Key, Value string
	// From is where the value comes from: the queue's own map, or what holds for all queues.
	From Origin
}

// Explain tells about the option of that name, which may be any of its names.
// The error says which names are near an unknown one.
func (c *Config) Explain(name string) (*Explanation, error) {
	o, found := find(c.options, name)
	if !found {
		return nil, unknownOption(name)
	}
	chain := c.chains[o.Name]
	last := chain[len(chain)-1]
	e := &Explanation{Option: o, Value: last.Value, From: last.Origin, Chain: append([]Setting(nil), chain...)}
	if o.secret {
		e.hide()
	}
	if o.Name == "queues" {
		for i := range c.Queues {
			e.Queues = append(e.Queues, c.explainQueue(i))
		}
	}
	return e, nil
}

func (e *Explanation) hide() {
	if e.Value != "" {
		e.Value = hidden
	}
	for i := range e.Chain {
		if e.Chain[i].Value != "" {
			e.Chain[i].Value = hidden
		}
	}
}

func (c *Config) explainQueue(i int) queueExplanation {
	q := c.Queues[i]
	e := queueExplanation{Name: q.Name}
	add := func(key, value string) {
		e.Settings = append(e.Settings, queueSetting{key, value, c.QueueOrigin(i, key)})
	}
	if q.URL != "" {
		add("url", q.URL)
	}
	if q.Weight > 0 {
		add("weight", strconv.Itoa(q.Weight))
	}
	add("max", strconv.Itoa(q.Concurrency))
	s := Settings{PerQueue: q.PerQueue}
	for j := range c.options {
		if o := &c.options[j]; o.PerQueue {
			add(o.Key, o.get(&s))
		}
	}
	return e
}

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
		return fmt.Errorf("%s is not an option: did you mean %s?", shown(name), orList(near))
	}
	return fmt.Errorf("%s is not an option: docs/options.md lists them all", shown(name))
}

// String returns the explanation as a few lines of text, without an end of line.
func (e *Explanation) String() string {
	o := &e.Option
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  %s\n", o.Name, o.Help)
	if o.Detail != "" {
		fmt.Fprintf(&b, "  %s\n", o.Detail)
	}
	b.WriteByte('\n')
	row := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-18s %s\n", label, text)
		}
	}
	row("value", orNone(readable(o.Kind(), e.Value))+" ("+e.From.String()+")")
	row("default", readable(o.Kind(), o.defaultText()))
	row("allowed", o.Allowed()+unitNote(o.Kind()))
	row("flag", "--"+strings.Join(append([]string{o.Name}, o.Aliases...), ", --"))
	row("variable", strings.Join(append([]string{o.Variable}, o.OtherVariables...), ", "))
	row("key", o.Key)
	row("Elastic Beanstalk", o.beanstalkText())
	row("aws-sqsd", o.DaemonKey)
	b.WriteString("\n  set by, the last one counts:\n")
	for _, s := range e.Chain {
		where := ""
		if s.Where != "" {
			where = " (" + s.Where + ")"
		}
		fmt.Fprintf(&b, "    %-12s %s%s\n", s.Layer, orNone(s.Value), where)
	}
	for _, q := range e.Queues {
		fmt.Fprintf(&b, "\n  queue %s:\n", q.Name)
		for _, s := range q.Settings {
			fmt.Fprintf(&b, "    %-24s %s (%s)\n", s.Key, orNone(s.Value), s.From)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// readable adds days, hours and minutes to a number of seconds that nobody can read.
func readable(k string, text string) string {
	d, err := parseDuration(text)
	if k != kindDuration || err != nil || d < 120e9 || d%60e9 != 0 {
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

func unitNote(k string) string {
	switch k {
	case kindDuration:
		return "; a bare number is seconds"
	case kindSize:
		return "; a bare number is bytes"
	case kindRate:
		return "; a bare number is messages per second"
	}
	return ""
}
