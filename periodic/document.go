package periodic

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// MaxFile is the most bytes that a file may have: 64 KiB.
	MaxFile = 64 << 10
	// maxTokens bounds what the parser is given: it takes quadratic time for some
	// files. A thousand tasks have about 14,000 words and signs.
	maxTokens = 20000
	// maxDepth bounds how deep maps and lists are nested; parsers take quadratic
	// time and more for deep nesting. A good file has three levels, or four
	// with attributes.
	maxDepth = 8
)

// reader reads one file and collects what is wrong with it.
type reader struct {
	file     string
	at       string // the task that is being read, as in [Problem]; "" for none
	problems []Problem
	warnings []Problem
}

func (r *reader) refuse(line int, option, text, hint string) {
	r.problems = append(r.problems, Problem{Where: r.place(line), Task: r.at, Option: option, Text: text, Hint: hint})
}

func (r *reader) warn(line int, option, text, hint string) {
	r.warnings = append(r.warnings, Problem{Where: r.place(line), Task: r.at, Option: option, Text: text, Hint: hint})
}

// place is "file:line", or the file alone for line 0.
func (r *reader) place(line int) string {
	if line == 0 {
		return r.file
	}
	return fmt.Sprintf("%s:%d", r.file, line)
}

// skeleton is what an advice to write a whole file shows.
const skeleton = `begin it with "version: 1" and "cron:", then one "- name: ..., url: ..., schedule: ..." for each task`

// lineEnds makes each line end in LF, as YAML reads CR LF and CR: the lexer takes CR LF
// in quoted texts and after blocks for two ends.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// parse returns the file's one mapping; nil when it is empty or wrong.
func (r *reader) parse(data []byte) *ast.MappingNode {
	if len(data) > MaxFile {
		r.refuse(0, "", fmt.Sprintf("the file has more than %d bytes", MaxFile),
			"this is no list of tasks; keep what the tasks work on elsewhere")
		return nil
	}
	text := lineEnds.Replace(strings.TrimPrefix(string(data), "\uFEFF"))
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		r.refuse(0, "", "the file is no UTF-8 text", "save it as UTF-8")
		return nil
	}
	tokens := lexer.Tokenize(text)
	if !r.admit(tokens) {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.refuseSyntax(err, tokens)
		return nil
	}
	return r.root(file)
}

// taskAround returns the label of the task that a line of a file belongs to that cannot
// be parsed, as [taskLabel] does; "" for none. A name below the line is not seen.
func taskAround(tokens token.Tokens, line int) string {
	number, name := 0, ""
	for i, t := range tokens {
		if t.Position.Line > line {
			break
		}
		switch {
		case t.Type == token.SequenceEntryType:
			number, name = number+1, ""
		case t.Type == token.MappingValueType && i > 0 && i+1 < len(tokens) && tokens[i-1].Value == "name":
			if value := tokens[i+1]; value.Position.Line == t.Position.Line && strings.TrimSpace(value.Value) != "" &&
				checkName(value.Value) == nil {
				name = shown(value.Value)
			}
		}
	}
	if name == "" && number > 0 {
		return fmt.Sprintf("number %d", number)
	}
	return name
}

// admit keeps out the parts of YAML that a list of tasks does not need and
// that make parsers slow or readers err.
func (r *reader) admit(tokens token.Tokens) bool {
	if len(tokens) > maxTokens {
		r.refuse(tokens[maxTokens].Position.Line, "", fmt.Sprintf("there are more than %d words and signs", maxTokens),
			"this is no list of tasks; let one task do the work of several")
		return false
	}
	var depth nesting
	for i, t := range tokens {
		if what := unread(t.Type); what != "" {
			r.at = taskAround(tokens, t.Position.Line)
			hint := `write plain "key: value" lines; a value that begins with a special character needs quotes`
			if t.Type == token.AliasType && i >= 2 && tokens[i-2].Value == "schedule" {
				what, hint = "an expression that begins with * is no YAML without quotes, and aliases",
					fmt.Sprintf("put it in quotes: schedule: %q", restOfLine(tokens[i:]))
			}
			r.refuse(t.Position.Line, "", what+" are not read", hint)
			return false
		}
		if depth.add(tokens, i) > maxDepth {
			r.refuse(t.Position.Line, "", fmt.Sprintf("maps and lists are nested deeper than %d", maxDepth), skeleton)
			return false
		}
	}
	return true
}

// restOfLine is what stands from the first token to the end of its line, less a comment.
func restOfLine(tokens token.Tokens) string {
	var text strings.Builder
	for _, t := range tokens {
		if t.Position.Line != tokens[0].Position.Line || t.Type == token.CommentType || text.Len() > 100 {
			break
		}
		text.WriteString(t.Origin)
	}
	return strings.TrimSpace(strings.Join(strings.Fields(text.String()), " "))
}

// unread names a part of YAML that is refused; "" for all others.
func unread(t token.Type) string {
	switch t {
	case token.AnchorType, token.AliasType:
		return "anchors and aliases"
	case token.TagType:
		return "tags"
	case token.MergeKeyType:
		return "merge keys"
	case token.MappingKeyType:
		return `keys that begin with "? "`
	case token.DirectiveType:
		return "directives"
	}
	return ""
}

// nesting follows how deep the tokens of a file are nested, without parsing.
type nesting struct {
	flow int
	// columns are those of the block lists and maps that are open.
	columns []int
}

// add takes token i and returns the depth there.
func (n *nesting) add(tokens token.Tokens, i int) int {
	switch tokens[i].Type {
	case token.SequenceStartType, token.MappingStartType:
		n.flow++
	case token.SequenceEndType, token.MappingEndType:
		n.flow = max(0, n.flow-1)
	case token.SequenceEntryType:
		n.open(tokens[i].Position.Column)
	case token.MappingValueType:
		if i > 0 && n.flow == 0 {
			n.open(tokens[i-1].Position.Column)
		}
	}
	return n.flow + len(n.columns)
}

func (n *nesting) open(column int) {
	for len(n.columns) > 0 && n.columns[len(n.columns)-1] >= column {
		n.columns = n.columns[:len(n.columns)-1]
	}
	n.columns = append(n.columns, column)
}

// repeated is what the parser's messages repeat of the file.
var repeated = regexp.MustCompile(`:? "(\\.|[^"\\])*"|(escape character) .*`)

// refuseSyntax tells the parser's message without what it repeats, which may be half of
// a payload that should have been in quotes.
func (r *reader) refuseSyntax(err error, tokens token.Tokens) {
	line, message := 0, err.Error()
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		message = syntax.GetMessage()
		if t := syntax.GetToken(); t != nil && t.Position != nil {
			line = t.Position.Line
		}
	}
	message, _, _ = strings.Cut(message, "\n")
	message = cut(repeated.ReplaceAllString(strings.ReplaceAll(message, "'\t'", "tab"), "$2"))
	message = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return '?'
		}
		return c
	}, message)
	if line > 0 {
		r.at = taskAround(tokens, line)
	}
	r.refuse(line, "", "this is no YAML: "+message,
		`write one "key: value" per line, with a blank after the colon and without tabs in front; put an expression in quotes`)
}

func (r *reader) root(file *ast.File) *ast.MappingNode {
	var root *ast.MappingNode
	for _, doc := range file.Docs {
		switch body := doc.Body.(type) {
		case nil, *ast.CommentGroupNode, *ast.NullNode:
		case *ast.MappingNode:
			if root != nil {
				r.refuse(lineOf(body), "", "there is a second document in the file", "keep one: delete the line --- between them")
				return nil
			}
			root = body
		default:
			r.refuse(lineOf(body), "", "this is no list of tasks", skeleton)
			return nil
		}
	}
	if root == nil {
		r.refuse(0, "", "the file is empty", skeleton)
	}
	return root
}

// scalar returns a plain value as it was written.
func scalar(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.LiteralNode:
		return strings.TrimSuffix(v.Value.Value, "\n"), true
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return v.GetToken().Value, true
	}
	return "", false
}

func keyOf(pair *ast.MappingValueNode) string { return pair.Key.GetToken().Value }

func lineOf(n ast.Node) int {
	if pair, ok := n.(*ast.MappingValueNode); ok {
		n = pair.Key
	}
	if mapping, ok := n.(*ast.MappingNode); ok && len(mapping.Values) > 0 {
		n = mapping.Values[0].Key
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}
