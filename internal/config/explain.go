package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"tendril/internal/bundle"
)

// Explanation describes an option, its value and the origin of the value.
type Explanation struct {
	Option Option
	Value  string
	From   Origin
	// Chain holds the default and then each value set, weakest first.
	Chain  []Setting
	Queues []QueueExplanation
}

// QueueExplanation describes the settings of one queue.
type QueueExplanation struct {
	Name     string
	Settings []QueueSetting
}

// QueueSetting is one of a queue's settings.
type QueueSetting struct {
	Key, Value string
	From       Origin
}

// Explain describes the option with the given name, in any notation.
func (c *Config) Explain(name string) (*Explanation, error) {
	o := findByName(c.options, name)
	if o == nil {
		return nil, UnknownOption(name)
	}

	e := c.explanationOf(o)
	return &e, nil
}

func (c *Config) explanationOf(o *Option) Explanation {
	last := c.last(o.Name)
	e := Explanation{Option: *o, Value: o.redacted(last.Value), From: last.Origin, Chain: slices.Clone(c.chains[o.Name])}
	for i := range e.Chain {
		e.Chain[i].Value = o.redacted(e.Chain[i].Value)
	}

	if o.Name == "queues" {
		for i := range c.Queues {
			e.Queues = append(e.Queues, c.explainQueue(i))
		}
	}

	return e
}

// ExplainAll describes every option, in table order.
func (c *Config) ExplainAll() []Explanation {
	var all []Explanation
	for _, o := range c.options {
		all = append(all, c.explanationOf(o))
	}
	return all
}

func (o *Option) redacted(value string) string {
	if o.IsSecret() && value != "" {
		return hidden
	}
	return withoutSecret(value)
}

func withoutSecret(value string) string { return bundle.HideSecret("", value) }

// WithoutQuery hides the query string if the option's value is a path.
func (o *Option) WithoutQuery(value string) string {
	if o.Name == "http-path" || o.Name == "healthcheck" {
		return WithoutQuery(value)
	}
	return value
}

func (c *Config) explainQueue(i int) QueueExplanation {
	q := c.Queues[i]
	q.Max = q.Concurrency // the maximum in force
	perQueue := table(&Settings{PerQueue: q.PerQueue})
	e := QueueExplanation{Name: q.Name}
	for _, o := range queueTable(&q, perQueue) {
		if q.hasKey(o.Key) {
			e.Settings = append(e.Settings, QueueSetting{o.Key, o.redacted(o.value.get()), c.QueueOrigin(i, o.Key)})
		}
	}
	return e
}

func (q *QueueSettings) hasKey(key string) bool {
	switch key {
	case "name", "arn": // the explanation's heading, and listed as the URL
		return false
	case "url":
		return q.URL != ""
	case "weight":
		return q.Weight != 0
	}
	return true
}

// Option returns the setting's row in the option table.
func (s *QueueSetting) Option() Option {
	if o := findByKey(queueTable(&QueueSettings{}, table(&Settings{})), s.Key); o != nil {
		return *o
	}
	return Option{Key: s.Key} // from a different version of tendril
}

// UnknownOption returns an error that suggests similar option names.
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
		return fmt.Errorf("unknown option %s: did you mean %s?", shown(name), orList(near))
	}
	return fmt.Errorf("unknown option %s: docs/options.md lists them all", shown(name))
}

// String returns several lines, without a final newline.
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
	row("value", cmp.Or(o.withLongUnit(e.Value), "none")+" ("+e.From.String()+")")
	row("default", o.DefaultText())
	row("allowed", o.AllowedText()+o.unitNote())
	row("flag", "--"+strings.Join(append([]string{o.Name}, o.Aliases...), ", --"))
	row("variable", strings.Join(append([]string{o.Variable}, o.OtherVariables...), ", "))
	row("key", o.Key)
	row("Elastic Beanstalk", o.beanstalkText())
	row("aws-sqsd", o.DaemonKey)
	b.WriteString("\n  set by (the last one wins):\n")
	for _, s := range e.Chain {
		where := ""
		if s.Origin.Where != "" {
			where = " (" + s.Origin.Where + ")"
		}
		fmt.Fprintf(&b, "    %-12s %s%s\n", s.Origin.Layer, cmp.Or(s.Value, "none"), where)
	}

	for _, q := range e.Queues {
		fmt.Fprintf(&b, "\n  queue %s:\n", q.Name)
		for _, s := range q.Settings {
			fmt.Fprintf(&b, "    %-24s %s (%s)\n", s.Key, cmp.Or(s.Value, "none"), s.From)
		}
	}

	return strings.TrimSuffix(b.String(), "\n")
}

func (o *Option) withLongUnit(text string) string {
	d, err := ParseDuration(text)
	if o.Kind() != kindDuration || err != nil || d < 2*time.Minute || d%time.Minute != 0 {
		return text
	}
	human := HumanDuration(d)
	number := human[:len(human)-1]
	word := map[byte]string{'d': "day", 'h': "hour", 'm': "minute"}[human[len(human)-1]]
	if number != "1" {
		word += "s"
	}
	return fmt.Sprintf("%s, that is %s %s", text, number, word)
}

func (o *Option) unitNote() string {
	if o.Unit() == "" {
		return ""
	}
	return "; a bare number is " + o.Unit()
}
