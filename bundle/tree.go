package bundle

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// maxDocument bounds a file of settings: 128 KiB.
	maxDocument = 128 << 10
	// maxDepth bounds how deep maps and lists are nested; parsers take quadratic
	// time and more for deep nesting. CloudFormation resources have about 15.
	maxDepth = 32
)

// kind is what a node is.
type kind int

const (
	scalar kind = iota
	null
	sequence
	mapping
)

// node is one value of a YAML or JSON document, with the text as it was
// written: 010 and yes stay what they are. A node that an alias names is shared,
// never copied, so that aliases cannot make a document larger than its file; merge
// keys copy keys, up to maxMerged, and share their values.
type node struct {
	kind         kind
	text         string // of a scalar
	tag          string // such as !Ref; "" for none
	line, column int
	items        []*node // of a sequence
	pairs        []pair  // of a mapping
}

// pair is one key of a mapping and its value.
type pair struct {
	key          string
	line, column int
	value        *node
}

// get returns the value of a key, nil when there is none.
func (n *node) get(key string) *node {
	for i := range n.pairs {
		if n.pairs[i].key == key {
			return n.pairs[i].value
		}
	}
	return nil
}

// document is the reading of one file of settings: what is wrong with it, and
// what is left aside.
type document struct {
	// path is for problems, name (below the bundle's folder) for findings.
	path, name string
	problems   []Problem
	findings   []Finding
}

// maxProblems bounds how many problems of one file are told.
const maxProblems = 20

func (d *document) refuse(line, column int, text, hint string) {
	if len(d.problems) == maxProblems {
		return
	}
	d.problems = append(d.problems, Problem{File: d.path, Line: line, Column: column, Text: text, Hint: hint})
}

func (d *document) aside(line int, what string) {
	d.findings = append(d.findings, Finding{File: d.name, Line: line, What: what})
}

// parse returns the document's one mapping, read as JSON or YAML by what it
// looks like; nil when it is empty or wrong. Keys that come twice are refused.
func (d *document) parse(data []byte) *node {
	if len(data) > maxDocument {
		d.refuse(0, 0, fmt.Sprintf("the file has more than %d bytes", maxDocument),
			"keep settings in it, and scripts and data in files of their own")
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		d.refuse(0, 0, "the file is no UTF-8 text", "save it as UTF-8")
		return nil
	}
	var root *node
	var problem *Problem
	if begin := bytes.TrimLeft(data, " \t\r\n"); len(begin) > 0 && begin[0] == '{' {
		if root, problem = parseJSON(data); problem != nil &&
			!bytes.HasPrefix(bytes.TrimLeft(begin[1:], " \t\r\n"), []byte(`"`)) {
			root, problem = parseYAML(data) // {a: b} is YAML, though no JSON
		}
	} else {
		root, problem = parseYAML(data)
	}
	switch {
	case problem != nil:
		d.refuse(problem.Line, problem.Column, problem.Text, problem.Hint)
		return nil
	case root == nil || root.kind == null:
		return nil
	case root.kind != mapping:
		d.refuse(root.line, root.column, "this is no map of settings",
			`begin with a key and a colon, such as "option_settings:"`)
		return nil
	}
	if !d.admitKeys(root, map[*node]bool{}) {
		return nil
	}
	return root
}

// admitKeys refuses a key that comes twice in one map: readers differ in which
// of the two they drop.
func (d *document) admitKeys(n *node, seen map[*node]bool) bool {
	if seen[n] {
		return true
	}
	seen[n] = true
	lines := map[string]int{}
	good := true
	for _, p := range n.pairs {
		if first, twice := lines[p.key]; twice {
			d.refuse(p.line, p.column, fmt.Sprintf("%q is already in line %d", shorten(p.key), first),
				"join the two: one of them would be dropped")
			good = false
		} else {
			lines[p.key] = p.line
		}
		good = d.admitKeys(p.value, seen) && good
	}
	for _, item := range n.items {
		good = d.admitKeys(item, seen) && good
	}
	return good
}

// position returns line and column, from 1, of an offset in text.
func position(text []byte, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	line = bytes.Count(before, []byte("\n")) + 1
	return line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// printable makes what somebody else wrote fit a message.
func printable(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	message = strings.Map(func(r rune) rune {
		if isControl(r) || r == '\t' {
			return '?'
		}
		return r
	}, message)
	return shorten(message)
}
