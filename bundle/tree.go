package bundle

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"tendril/yamlfile"
)

const (
	// maxDocument bounds a file of settings: 128 KiB.
	maxDocument = 128 << 10
	maxTokens   = 20000
	// maxDepth: CloudFormation resources have about 15 levels.
	maxDepth = 32
)

func settingsForm() *yamlfile.Options {
	return &yamlfile.Options{
		MaxBytes: maxDocument, MaxTokens: maxTokens, MaxDepth: maxDepth, What: "map of settings",
		HintTooMuch: "spread the settings over several files, and keep scripts and data in files of their own",
		HintForm:    `begin with a key and a colon, such as "option_settings:"`,
		HintSyntax:  `indent with blanks, put a blank after each colon, and put values with ": " or " #" in quotes`,
	}
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
	d.problems = append(d.problems, Problem{Where: yamlfile.Place(d.path, line, column), Text: text, Hint: hint})
}

func (d *document) notUsed(line int, what string) {
	d.findings = append(d.findings, Finding{File: d.name, Line: line, What: what})
}

// parse returns the document's one mapping, read as JSON or YAML by what it
// looks like; nil when it is empty or wrong. Keys that come twice are refused.
func (d *document) parse(data []byte) *yamlfile.Node {
	root, fault := readMap(data)
	if fault != nil {
		d.refuse(fault.Line, fault.Column, fault.Text, fault.Hint)
		return nil
	}
	if root == nil || !d.admitKeys(root, map[*yamlfile.Node]bool{}) {
		return nil
	}
	return root
}

func readMap(data []byte) (*yamlfile.Node, *yamlfile.Fault) {
	form := settingsForm()
	text, fault := yamlfile.Text(data, form)
	if fault != nil {
		return nil, fault
	}
	if begin := strings.TrimLeft(text, " \t\n"); strings.HasPrefix(begin, "{") {
		// {a: b} is YAML, though no JSON.
		root, fault := parseJSON([]byte(text))
		if fault == nil || strings.HasPrefix(strings.TrimLeft(begin[1:], " \t\n"), `"`) {
			return root, fault
		}
	}
	return yamlfile.Map(text, form)
}

// admitKeys refuses a key that comes twice in one map: readers differ in which
// of the two they drop.
func (d *document) admitKeys(n *yamlfile.Node, seen map[*yamlfile.Node]bool) bool {
	if seen[n] {
		return true
	}
	seen[n] = true
	lines := map[string]int{}
	good := true
	for _, p := range n.Pairs {
		if first, twice := lines[p.Key]; twice {
			d.refuse(p.Line, p.Column, fmt.Sprintf("%q is already in line %d", yamlfile.Short(p.Key), first),
				"join the two: one of them would be dropped")
			good = false
		} else {
			lines[p.Key] = p.Line
		}
		good = d.admitKeys(p.Value, seen) && good
	}
	for _, item := range n.Items {
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
