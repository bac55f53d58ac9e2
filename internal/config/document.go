package config

import (
	"path/filepath"
	"slices"
	"strings"

	"tendril/internal/config/yamlfile"
)

const (
	sqsdSection = "sqsd"
	queuesKey   = "queues"
	maxFile     = 64 << 10
)

// entry keeps the value as written, so that 000000000000 and off are not converted.
type entry struct {
	key, text string
	line      int
	null      bool
	sqsd      bool // the key was nested in sqsd
	list      bool // text was a YAML list, joined with commas
	// items are the elements of a list that contains maps. An element has either a text or pairs.
	items, pairs []entry
}

type document struct {
	file     string
	entries  []entry
	problems []Problem
}

func fileForm() *yamlfile.Options {
	return &yamlfile.Options{
		PlainOnly: true, MaxBytes: maxFile, MaxTokens: 4096, MaxDepth: 8, Form: "map of settings",
		HintTooMuch: "this is not a settings file", HintForm: `write one "key: value" per line`,
		HintSyntax: `write one "key: value" per line, with a space after the colon and no tabs in front`,
	}
}

func parseDocument(file string, data []byte) ([]entry, []Problem) {
	d := document{file: file}
	root, fault := yamlfile.Read(data, fileForm())
	if fault != nil {
		d.refuse(fault.Line, fault.Text, fault.Hint)
	}
	if root == nil {
		return nil, d.problems
	}

	const hint = "write the options by their Elastic Beanstalk names below it, such as \"  HttpPath: /\""
	for _, pair := range root.Pairs {
		switch {
		case pair.Key != sqsdSection:
			d.addPair(pair, false)
		case pair.Value.Kind == yamlfile.Mapping:
			for _, inner := range pair.Value.Pairs {
				d.addPair(inner, true)
			}
		case pair.Value.Kind == yamlfile.Null:
			d.refuse(pair.Line, "sqsd has no value", hint)
		default:
			d.refuse(pair.Line, "sqsd is not a map", hint)
		}
	}

	return d.entries, d.problems
}

func (d *document) addPair(pair yamlfile.Pair, sqsd bool) {
	if e, ok := d.readPair(pair, sqsd); ok {
		d.entries = append(d.entries, e)
	}
}

func (d *document) readPair(pair yamlfile.Pair, sqsd bool) (e entry, ok bool) {
	e = entry{key: pair.Key, line: pair.Line, sqsd: sqsd}
	switch value := pair.Value; {
	case pair.Key == queuesKey && !sqsd && slices.ContainsFunc(value.Items, isMap):
		e.items, ok = d.readQueues(value)
		return e, ok
	case value.Kind == yamlfile.Null:
		e.null = true
		return e, true
	case value.Kind == yamlfile.Sequence:
		e.list = true
		e.text, ok = joinItems(value.Items)
		if !ok {
			d.refuse(e.line, shown(e.key)+" contains something other than plain values",
				"write them on one line, separated by commas")
		}
		return e, ok
	}

	e.text, ok = scalar(pair.Value)
	if !ok {
		d.refuse(e.line, shown(e.key)+" is a map instead of a value", hintOfMap(e.key))
	}
	return e, ok
}

func joinItems(items []*yamlfile.Node) (text string, ok bool) {
	var texts []string
	for _, item := range items {
		text, ok := scalar(item)
		if !ok {
			return "", false
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ","), true
}

func hintOfMap(key string) string {
	switch key {
	case queuesKey:
		return "write " + queuesKey + ": payments:3,default:1, or a list with a dash before each item"
	case "filter":
		return "put the pattern in single quotes, or name the file that holds it"
	}
	return `write one plain value: "key: value"`
}

func isMap(n *yamlfile.Node) bool { return n.Kind == yamlfile.Mapping }

func (d *document) readQueues(list *yamlfile.Node) (items []entry, ok bool) {
	before := len(d.problems)
	for _, n := range list.Items {
		item := entry{line: n.Line}
		text, isScalar := scalar(n)
		switch {
		case isMap(n):
			for _, pair := range n.Pairs {
				if e, ok := d.readPair(pair, false); ok {
					item.pairs = append(item.pairs, e)
				}
			}
		case isScalar:
			item.text = text
		default:
			d.refuse(item.line, "invalid entry in queues",
				"use - jobs, or - name: jobs with its settings below")
		}
		items = append(items, item)
	}
	return items, len(d.problems) == before
}

func (d *document) refuse(line int, text, hint string) {
	d.problems = append(d.problems, Problem{Where: yamlfile.Place(d.file, line, 0), Text: text, Hint: hint})
}

func scalar(n *yamlfile.Node) (string, bool) {
	if n.Block {
		return strings.TrimSpace(n.Text), true
	}
	return n.Text, n.Kind == yamlfile.Scalar
}

// insteadOfDaemonKey has hints for the keys that only an aws-sqsd file has.
var insteadOfDaemonKey = map[string]string{
	"http_url": "use target: http://HOST:PORT", "http_port": "use target: http://HOST:PORT",
	"sqs_wait_time_seconds": "use wait_time: 20s", "drain_timeout": "use shutdown_timeout: 600s",
	"debug": "use verbose: true", "cloudwatch_interval": "use metrics_interval: 60s",
}

func isDaemonFile(path string, entries []entry) bool {
	for _, e := range entries {
		if !e.sqsd && insteadOfDaemonKey[e.key] != "" {
			return true
		}
	}
	abs, err := filepath.Abs(path)
	return err == nil && filepath.Base(filepath.Dir(abs)) == daemonFolder
}

const daemonFolder = "aws-sqsd.d"
