package environment

import (
	"fmt"
	"slices"

	"tendril/logging"
)

// greet prints the start: a few lines on a terminal, one event elsewhere.
func (q *pipelines) greet(console string) {
	var rows []logging.Row
	row := func(name, value string) { rows = append(rows, logging.Row{Name: name, Value: value}) }
	if q.endpoint != "" {
		row("queues", fmt.Sprintf("%s  (SQS protocol, in %s)", q.endpoint, q.s.DataDir))
	}
	for _, l := range q.lines {
		row("queue", l.url)
		if l.dead != "" {
			row("dead letters", l.dead)
		}
	}
	if len(q.lines) > 1 {
		row("order", q.orderText())
	}
	for _, target := range q.targets() {
		row("delivers", target)
	}
	row("console", console)
	if q.Logger.Banner("tendril "+q.Version, q.s.Name, rows) {
		return
	}
	attrs := []any{"component", "environment", "environment", q.s.Name, "version", q.Version, "backend", q.s.Backend,
		"endpoint", q.endpoint, "console", console}
	if home := q.home(); home != nil {
		attrs = append(attrs, "queue", home.name, "queue_url", home.url, "dead_letter_queue", home.dead,
			"target", home.goesTo())
	}
	if len(q.lines) > 1 {
		attrs = append(attrs, "queues", q.orderText())
	}
	q.Logger.Info("started", attrs...)
}

// targets are the places that messages are handed to, each once.
func (q *pipelines) targets() (list []string) {
	for _, l := range q.lines {
		text := l.target
		if !l.settings().ToFunction() {
			text = "POST " + text
		}
		if l.settings().ToOwnApp() {
			text += q.commandText()
		}
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}
