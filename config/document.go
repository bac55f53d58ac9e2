package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxFile bounds a settings file: 64 KiB.
	maxFile = 64 << 10
	// maxTokens bounds what the parser is given: it takes quadratic time for
	// deep nesting.
	maxTokens = 4096
	// sqsdSection is the map that holds options by their Elastic Beanstalk
	// names.
	sqsdSection = "sqsd"
	// queuesKey is the key that may hold a list of maps.
	queuesKey = "queues"
)

// entry is one "key: value" of a settings file. The text is what was written,
// so that 000000000000 and off stay what they are.
type entry struct {
	key, text string
	line      int
	// null: there is a key and no value.
	null bool
	// sqsd: the entry is below the key sqsd.
	sqsd bool
	// list: the text is the items of a list with commas between.
	list bool
	// items are the queues, where they are a list that holds maps.
	items []queueItem
}

// queueItem is one queue of a list: a plain value, or a map.
type queueItem struct {
	line  int
	text  string
	pairs []entry
}

// document reads one settings file.
type document struct {
	file     string
	entries  []entry
	problems []Problem
}

// lineEnds makes each line end in LF, as YAML reads CR LF and CR: the lexer takes
// CR LF in quoted texts and after blocks for two ends.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// parseDocument reads a settings file into its entries, in the order of the
// file. Anchors, aliases, tags and merge keys are refused before anything is
// parsed.
func parseDocument(file string, data []byte) ([]entry, []Problem) {
	d := document{file: file}
	if root := d.parse(data); root != nil {
		d.walk(root)
	}
	return d.entries, d.problems
}

// parse returns the file's one mapping; nil when it is empty or wrong.
func (d *document) parse(data []byte) *ast.MappingNode {
	if len(data) > maxFile {
		d.refuse(0, fmt.Sprintf("the file has more than %d bytes", maxFile), "this is no settings file")
		return nil
	}
	text := strings.TrimPrefix(string(data), "\uFEFF")
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		d.refuse(0, "the file is no UTF-8 text", "save it as UTF-8")
		return nil
	}
	tokens := lexer.Tokenize(lineEnds.Replace(text))
	if !d.admit(tokens) {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.refuseSyntax(err)
		return nil
	}
	return d.root(file)
}

// admit keeps out the parts of YAML that settings do not need and that make
// parsers slow or readers err.
func (d *document) admit(tokens token.Tokens) bool {
	if len(tokens) > maxTokens {
		d.refuse(tokens[maxTokens].Position.Line, fmt.Sprintf("more than %d words and signs", maxTokens),
			"this is no settings file")
		return false
	}
	for _, t := range tokens {
		what := ""
		switch t.Type {
		case token.AnchorType, token.AliasType:
			what = "anchors and aliases"
		case token.TagType:
			what = "tags"
		case token.MergeKeyType:
			what = "merge keys"
		case token.MappingKeyType:
			what = `keys that begin with "? "`
		case token.DirectiveType:
			what = "directives"
		default:
			continue
		}
		d.refuse(t.Position.Line, what+" are not read",
			`write plain "key: value" lines; a value that begins with a special character needs quotes`)
		return false
	}
	return true
}

// repeated is what the parser's messages repeat of the file.
var repeated = regexp.MustCompile(`:? "(\\.|[^"\\])*"|(escape character) .*`)

// refuseSyntax tells the parser's message without what it repeats: half of a token
// that should have been in quotes, for instance.
func (d *document) refuseSyntax(err error) {
	line, message := 0, err.Error()
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		message = syntax.GetMessage()
		if t := syntax.GetToken(); t != nil && t.Position != nil {
			line = t.Position.Line
		}
	}
	message, _, _ = strings.Cut(message, "\n")
	message = repeated.ReplaceAllString(strings.ReplaceAll(message, "'\t'", "tab"), "$2")
	message = cut(message)
	message = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, message)
	d.refuse(line, "this is no YAML: "+message,
		`write one "key: value" per line, with a blank after the colon and without tabs in front`)
}

func (d *document) root(file *ast.File) *ast.MappingNode {
	var root *ast.MappingNode
	for _, doc := range file.Docs {
		switch body := doc.Body.(type) {
		case nil, *ast.CommentGroupNode, *ast.NullNode:
		case *ast.MappingNode:
			if root != nil {
				d.refuse(lineOf(body), "there is a second document in the file", "keep one: delete the line --- between them")
				return nil
			}
			root = body
		default:
			d.refuse(lineOf(body), "this is no map of settings", `write one "key: value" per line`)
			return nil
		}
	}
	return root
}

// walk takes the top level, and the section sqsd below it.
func (d *document) walk(root *ast.MappingNode) {
	for _, pair := range root.Values {
		if key := keyOf(pair); key == sqsdSection {
			d.walkSection(pair)
		} else {
			d.take(pair, false)
		}
	}
}

func (d *document) walkSection(pair *ast.MappingValueNode) {
	const hint = "write the options by their Elastic Beanstalk names below it, such as \"  HttpPath: /\""
	switch section := pair.Value.(type) {
	case *ast.MappingNode:
		for _, inner := range section.Values {
			d.take(inner, true)
		}
	case *ast.NullNode:
		d.refuse(lineOf(pair), "sqsd has no value", hint)
	default:
		d.refuse(lineOf(pair), "sqsd is no map", hint)
	}
}

// take makes one pair an entry.
func (d *document) take(pair *ast.MappingValueNode, sqsd bool) {
	e := entry{key: keyOf(pair), line: lineOf(pair), sqsd: sqsd}
	switch v := pair.Value.(type) {
	case *ast.NullNode:
		e.null = true
	case *ast.SequenceNode:
		if e.key == queuesKey && !sqsd && slices.ContainsFunc(v.Values, isMap) {
			d.takeQueues(e, v)
			return
		}
		e.list = true
		var items []string
		for _, item := range v.Values {
			text, ok := scalar(item)
			if !ok {
				d.refuse(lineOf(pair), shown(e.key)+" is a list of something else than plain values",
					"write them on one line, with commas between")
				return
			}
			items = append(items, text)
		}
		e.text = strings.Join(items, ",")
	default:
		text, ok := scalar(v)
		if !ok {
			hint := `write one plain value: "key: value"`
			if e.key == queuesKey {
				hint = "write " + queuesKey + ": payments:3,default:1, or a list whose items begin with a dash"
			}
			d.refuse(lineOf(pair), shown(e.key)+" has a map for a value", hint)
			return
		}
		e.text = text
	}
	d.entries = append(d.entries, e)
}

func isMap(n ast.Node) bool {
	_, ok := n.(*ast.MappingNode)
	return ok
}

// takeQueues makes a list of queues an entry.
func (d *document) takeQueues(e entry, list *ast.SequenceNode) {
	before := len(d.problems)
	for _, n := range list.Values {
		item := queueItem{line: lineOf(n)}
		if m, ok := n.(*ast.MappingNode); ok {
			inner := document{file: d.file}
			for _, pair := range m.Values {
				inner.take(pair, false)
			}
			item.pairs, item.line = inner.entries, lineOf(m)
			d.problems = append(d.problems, inner.problems...)
		} else if item.text, ok = scalar(n); !ok {
			d.refuse(item.line, "queues holds something else than queues",
				"write - jobs, or - name: jobs and its settings below")
		}
		e.items = append(e.items, item)
	}
	if len(d.problems) == before {
		d.entries = append(d.entries, e)
	}
}

func (d *document) refuse(line int, text, hint string) {
	d.problems = append(d.problems, Problem{Where: place(d.file, line), Text: text, Hint: hint})
}

// place is "file:line", or the file alone for line 0.
func place(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// scalar returns a plain value as it was written.
func scalar(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.LiteralNode:
		return strings.TrimSpace(v.Value.Value), true
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return v.GetToken().Value, true
	}
	return "", false
}

func keyOf(pair *ast.MappingValueNode) string { return pair.Key.GetToken().Value }

func lineOf(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		n = m.Values[0]
	}
	if pair, ok := n.(*ast.MappingValueNode); ok {
		n = pair.Key
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}
