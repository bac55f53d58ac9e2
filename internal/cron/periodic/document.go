package periodic

import (
	"fmt"
	"regexp"
	"strings"

	"tendril/internal/config/yamlfile"
)

// MaxFile is the maximum file size in bytes.
const MaxFile = 512 << 10

type reader struct {
	file     string
	label    string // of the current task
	problems []Problem
	warnings []Problem
}

func (r *reader) refuse(line int, option, text, hint string) {
	r.problems = append(r.problems, r.problem(line, option, text, hint))
}

func (r *reader) warn(line int, option, text, hint string) {
	r.warnings = append(r.warnings, r.problem(line, option, text, hint))
}

func (r *reader) problem(line int, option, text, hint string) Problem {
	return Problem{Where: yamlfile.Place(r.file, line, 0), Task: r.label, Option: option, Text: text, Hint: hint}
}

const skeleton = `start it with "version: 1" and "cron:", then one "- name: ..., url: ..., schedule: ..." per task`

func (r *reader) parse(data []byte) *yamlfile.Node {
	root, fault := yamlfile.Read(data, &yamlfile.Options{
		// 1000 tasks with every key have about 50,000 tokens.
		PlainOnly: true, MaxBytes: MaxFile, MaxTokens: 60000, MaxDepth: 8, Form: "list of tasks",
		HintTooMuch: "combine tasks, or keep large payloads elsewhere",
		HintForm:    skeleton,
		HintSyntax: `write one "key: value" per line, with a space after the colon and no tabs in front; put an ` +
			`expression in quotes`,
	})
	switch {
	case fault == nil && root == nil:
		r.refuse(0, "", "the file is empty", skeleton)
	case fault == nil:
		return root
	case fault.Line > 0 && fault.Hint != skeleton:
		r.refuseSyntax(strings.Split(string(data), "\n"), fault)
	default:
		r.refuse(fault.Line, "", fault.Text, fault.Hint)
	}
	return nil
}

var (
	itemLine = regexp.MustCompile(`^\s*-(\s|$)`)
	nameLine = regexp.MustCompile(`(?:^|[\s{,])name:\s+("[^"]*"|'[^']*'|[^\s,}#][^,}#]*)`)
	starLine = regexp.MustCompile(`^[\s-]*schedule:\s+(\*.*?)\s*(?:\s#.*)?$`)
)

func (r *reader) refuseSyntax(lines []string, fault *yamlfile.Fault) {
	r.label = labelOfLastTask(lines[:min(fault.Line, len(lines))])
	text, hint := fault.Text, fault.Hint
	if fault.Line <= len(lines) {
		if star := starLine.FindStringSubmatch(lines[fault.Line-1]); star != nil {
			text = "quote expressions that start with *"
			expression := yamlfile.Short(strings.Join(strings.Fields(star[1]), " "))
			hint = fmt.Sprintf("put it in quotes: schedule: %q", expression)
		}
	}
	r.refuse(fault.Line, "", text, hint)
}

func labelOfLastTask(lines []string) string {
	number, name := 0, ""
	for _, line := range lines {
		if itemLine.MatchString(line) {
			number, name = number+1, ""
		}
		if found := nameLine.FindStringSubmatch(line); found != nil {
			if text := strings.Trim(found[1], `"' `); checkName(text) == nil {
				name = yamlfile.Shown(text)
			}
		}
	}
	if name == "" && number > 0 {
		return fmt.Sprintf("number %d", number)
	}
	return name
}

func scalar(n *yamlfile.Node) (string, bool) {
	if n.Kind == yamlfile.Scalar && n.Block {
		return strings.TrimSuffix(n.Text, "\n"), true
	}
	return n.Text, n.Kind == yamlfile.Scalar
}

// Problem is an error or warning about a cron.yaml.
type Problem = yamlfile.Problem

// Error contains the problems of a file, at least one.
type Error struct {
	Problems []Problem
}

// Error returns each problem, followed by its hint on an indented line.
func (e *Error) Error() string { return yamlfile.Join(e.Problems) }
