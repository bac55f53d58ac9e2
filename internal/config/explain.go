package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/bundle"
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
	Queues []QueueExplanation
}

// QueueExplanation is what is in force for one queue.
type QueueExplanation struct {
	// Name is the queue's name.
	Name string
	// Settings are its settings, in the order of the table.
	Settings []QueueSetting
}

// QueueSetting is one setting of one queue.
type QueueSetting struct {
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
		return nil, UnknownOption(name)
	}
	chain := c.chains[o.Name]
	last := chain[len(chain)-1]
	e := &Explanation{Option: o, Value: last.Value, From: last.Origin, Chain: append([]Setting(nil), chain...)}
	e.hide()
	if o.Name == "queues" {
		for i := range c.Queues {
			e.Queues = append(e.Queues, c.explainQueue(i))
		}
	}
	return e, nil
}

// ExplainAll tells about every option, in the order of the table.
func (c *Config) ExplainAll() []Explanation {
	var all []Explanation
	for i := range c.options {
		if e, err := c.Explain(c.options[i].Name); err == nil { // each of them is known
			all = append(all, *e)
		}
	}
	return all
}

// hide replaces the values of a secret option, and those of others that hold what looks like a password.
func (e *Explanation) hide() {
	e.Value = e.Option.shown(e.Value)
	for i := range e.Chain {
		e.Chain[i].Value = e.Option.shown(e.Chain[i].Value)
	}
}

// shown is a value of the option for people.
func (o *Option) shown(value string) string {
	if o.secret && value != "" {
		return hidden
	}
	return bundle.Setting{Option: "value", Value: value}.Shown()
}

// WithoutQuery is a value of the option for people: the query of a path is hidden.
func (o *Option) WithoutQuery(value string) string {
	if o.Name == "http-path" || o.Name == "healthcheck" {
		return WithoutQuery(value)
	}
	return value
}

func (c *Config) explainQueue(i int) QueueExplanation {
	q := c.Queues[i]
	e := QueueExplanation{Name: q.Name}
	add := func(o Option, value string) {
		e.Settings = append(e.Settings, QueueSetting{o.Key, value, c.QueueOrigin(i, o.Key)})
	}
	for _, o := range queueKeys() {
		switch {
		case o.Key == "url" && q.URL != "":
			add(o, q.URL)
		case o.Key == "weight" && q.Weight > 0:
			add(o, strconv.Itoa(q.Weight))
		case o.Key == "max":
			add(o, strconv.Itoa(q.Concurrency))
		}
	}
	s := Settings{PerQueue: q.PerQueue}
	for j := range c.options {
		if o := &c.options[j]; o.PerQueue {
			add(*o, o.shown(o.get(&s)))
		}
	}
	return e
}

// Option is the row of the table, or what is like one for a key that only queues have.
func (s *QueueSetting) Option() Option {
	all := slices.Concat(queueKeys(), Options())
	i := slices.IndexFunc(all, func(o Option) bool { return o.Key == s.Key })
	return all[max(i, 0)]
}

// UnknownOption is the error for a name that is no option's. It says which names are near.
func UnknownOption(name string) error {
	var known []string
	for _, o := range Options() {
		known = append(known, o.Name)
		known = append(known, o.Aliases...)
		if o.Beanstalk != "" {
			known = append(known, o.Beanstalk)
		}
	}
	if near := Nearest(strings.TrimLeft(name, "-"), known); len(near) > 0 {
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
	row("default", o.DefaultText())
	row("allowed", o.AllowedText()+unitNote(o.Kind()))
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
	d, err := ParseDuration(text)
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
