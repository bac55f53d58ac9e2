package yamlfile

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

// Options describe and limit a file. All limits must be set.
type Options struct {
	// PlainOnly rejects anchors, aliases, tags, merge keys, "? " keys and directives.
	PlainOnly bool
	// The limits protect the parser, which takes quadratic time or more for some files.
	MaxBytes, MaxTokens, MaxDepth int
	// Form names the expected content, such as "map of settings".
	Form string
	// HintTooMuch is for files that are too large, HintForm for files that are not a map or too deeply nested, and
	// HintSyntax for invalid YAML.
	HintTooMuch, HintForm, HintSyntax string
}

// Kind is the type of a [Node].
type Kind int

// The kinds of nodes.
const (
	Scalar Kind = iota
	Null
	Sequence
	Mapping
)

// Node is a value with its text as written. An alias shares its anchor's node.
type Node struct {
	Kind         Kind
	Text         string
	Block        bool   // after | or >
	Tag          string // such as !Ref, or ""
	Line, Column int
	Items        []*Node
	Pairs        []Pair
}

// Pair is a key of a mapping with its value.
type Pair struct {
	Key          string
	Line, Column int
	Value        *Node
}

// Get returns the value of a key, or nil if absent.
func (n *Node) Get(key string) *Node {
	for i := range n.Pairs {
		if n.Pairs[i].Key == key {
			return n.Pairs[i].Value
		}
	}
	return nil
}

// Fault is a [Problem] at a position in a file. Line and Column count from 1; Line 0 means the whole file.
type Fault struct {
	Line, Column int
	Text, Hint   string
}

// maxMerged limits merge keys, which could expand a small file to millions of keys.
const maxMerged = 10000

// lineEnds replaces CR and CR LF. The lexer would read CR LF as two line breaks in quoted and after block scalars.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func (o *Options) checkTokens(tokens token.Tokens) *Fault {
	if len(tokens) > o.MaxTokens {
		return faultAt(tokens[o.MaxTokens], fmt.Sprintf("more than %d words and symbols", o.MaxTokens), o.HintTooMuch)
	}

	var depth nesting
	for i, t := range tokens {
		if what := unsupported[t.Type]; o.PlainOnly && what != "" {
			return faultAt(t, what+" are not supported",
				`use plain "key: value" lines; quote values that start with a special character`)
		}

		if depth.add(tokens, i) > o.MaxDepth {
			return faultAt(t, fmt.Sprintf("maps and lists nested deeper than %d", o.MaxDepth), o.HintForm)
		}

		switch {
		case t.Type == token.MappingKeyType && !isPlainKey(tokens[i:], depth.flow > 0):
			return faultAt(t, `a key that begins with "? " must be plain text, with its colon below the "?"`, `write "key: value"`)
		case t.Type == token.DirectiveType && !isYAMLVersion(tokens, i):
			return faultAt(t, "this directive is not supported",
				`delete the line; only %YAML 1.1 or 1.2 is allowed, at the top and with --- below it`)
		}
	}

	return nil
}

var unsupported = map[token.Type]string{
	token.AnchorType: "anchors and aliases", token.AliasType: "anchors and aliases", token.TagType: "tags",
	token.MergeKeyType: "merge keys", token.MappingKeyType: `keys that begin with "? "`, token.DirectiveType: "directives",
}

// isPlainKey rejects "? a: b", which the parser reads as "a: b" although the key is a map.
func isPlainKey(tokens token.Tokens, flow bool) bool {
	rest := withoutComments(tokens[1:])
	if len(rest) == 0 {
		return false
	}

	switch rest[0].Type {
	case token.StringType, token.SingleQuoteType, token.DoubleQuoteType, token.BoolType, token.NullType,
		token.InfinityType, token.NanType,
		token.IntegerType, token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType, token.FloatType:
	default:
		return false
	}

	rest = withoutComments(rest[1:])
	return flow || len(rest) == 0 || rest[0].Type != token.MappingValueType ||
		rest[0].Position.Column == tokens[0].Position.Column
}

// isYAMLVersion accepts YAML 1.1 and 1.2, because this package reads both alike.
func isYAMLVersion(tokens token.Tokens, i int) bool {
	if len(withoutComments(tokens[:i])) > 0 || len(tokens) < i+3 || tokens[i+1].Value != "YAML" ||
		tokens[i+2].Position.Line != tokens[i].Position.Line {
		return false
	}
	rest := withoutComments(tokens[i+3:])
	return (tokens[i+2].Value == "1.1" || tokens[i+2].Value == "1.2") && len(rest) > 0 &&
		rest[0].Type == token.DocumentHeaderType
}

func withoutComments(tokens token.Tokens) token.Tokens {
	for len(tokens) > 0 && tokens[0].Type == token.CommentType {
		tokens = tokens[1:]
	}
	return tokens
}

func faultAt(t *token.Token, text, hint string) *Fault {
	p := &Fault{Text: text, Hint: hint}
	if t != nil && t.Position != nil {
		p.Line, p.Column = t.Position.Line, t.Position.Column
	}
	return p
}

var repeated = regexp.MustCompile(`:? "(\\.|[^"\\])*"|(escape character) .*`)

// syntaxFault omits excerpts of the file, because they may contain part of an unquoted password.
func (o *Options) syntaxFault(err error) *Fault {
	message := err.Error()
	var where *token.Token
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		message, where = syntax.GetMessage(), syntax.GetToken()
	}
	message, _, _ = strings.Cut(message, "\n")
	message = repeated.ReplaceAllString(strings.ReplaceAll(message, "'\t'", "tab"), "$2")
	return faultAt(where, "invalid YAML: "+Printable(message), o.HintSyntax)
}

type nesting struct {
	flow    int
	columns []int
}

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
			key := tokens[i-1].Position
			if own := tokens[i].Position; own.Line > key.Line { // after "?", the position of the colon
				key = own
			}
			n.open(key.Column)
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

type reader struct {
	// anchors holds only complete nodes, so that a node cannot contain itself.
	anchors map[string]*Node
	merged  int
	fault   *Fault
}

func (r *reader) refuse(n ast.Node, text, hint string) *Node {
	if r.fault == nil {
		r.fault = faultAt(n.GetToken(), text, hint)
	}
	return &Node{Kind: Null}
}

func (r *reader) node(n ast.Node) *Node {
	switch v := n.(type) {
	case nil:
		return &Node{Kind: Null}
	case *ast.NullNode:
		return r.placed(n, Node{Kind: Null})
	case *ast.MappingNode:
		return r.mapping(n, v.Values)
	case *ast.MappingValueNode:
		return r.mapping(n, []*ast.MappingValueNode{v})
	case *ast.SequenceNode:
		list := Node{Kind: Sequence}
		for _, item := range v.Values {
			list.Items = append(list.Items, r.node(item))
		}
		return r.placed(n, list)
	case *ast.AnchorNode:
		whole := r.node(v.Value)
		r.anchors[v.Name.GetToken().Value] = whole
		return whole
	case *ast.AliasNode:
		name := v.Value.GetToken().Value
		if named := r.anchors[name]; named != nil {
			return named
		}
		// The alias may be a password that starts with "*", so the message omits it.
		return r.refuse(n, "alias used before its definition",
			"write the value itself, or quote it if it starts with *")
	case *ast.TagNode:
		tagged := *r.node(v.Value)
		tagged.Tag = v.Start.Value
		return &tagged
	case *ast.LiteralNode:
		return r.placed(n, Node{Text: v.Value.Value, Block: true})
	case ast.ScalarNode:
		return r.placed(n, Node{Text: n.GetToken().Value})
	}

	return r.refuse(n, "this value is not text, a list or a map", `use plain "key: value" lines`)
}

func (r *reader) placed(n ast.Node, made Node) *Node {
	if t := n.GetToken(); t != nil && t.Position != nil {
		made.Line, made.Column = t.Position.Line, t.Position.Column
	}
	return &made
}

func (r *reader) mapping(n ast.Node, values []*ast.MappingValueNode) *Node {
	m := Node{Kind: Mapping}
	var merge *ast.MappingValueNode
	place := 0
	for i, v := range values {
		key := plainText(v.Key)
		if key == nil {
			return r.refuse(v.Key, "a key must be plain text", `write "key: value"`)
		}
		if i == 0 { // the parser's position of a block map is its colon
			m.Line, m.Column = key.Position.Line, key.Position.Column
		}

		if isMergeKey(key) {
			if merge != nil {
				return r.refuse(v.Key, fmt.Sprintf("duplicate <<, first on line %d", plainText(merge.Key).Position.Line),
					"join the two: <<: [*one, *other]")
			}
			merge, place = v, len(m.Pairs)
			continue
		}

		m.Pairs = append(m.Pairs,
			Pair{Key: key.Value, Line: key.Position.Line, Column: key.Position.Column, Value: r.node(v.Value)})
	}

	if merge != nil {
		r.merge(&m, place, merge)
	}
	if len(values) == 0 {
		return r.placed(n, m)
	}

	return &m
}

func plainText(key ast.Node) *token.Token {
	if explicit, ok := key.(*ast.MappingKeyNode); ok {
		key = explicit.Value
	}
	switch key.(type) {
	case *ast.LiteralNode:
	case ast.ScalarNode, *ast.MergeKeyNode:
		return key.GetToken()
	}
	return nil
}

func isMergeKey(key *token.Token) bool {
	return key.Type == token.MergeKeyType || key.Type == token.StringType && key.Value == "<<"
}

const mergeForm = "use <<: *name, or <<: [*one, *other], with &name before a map further up; or write the keys " +
	"themselves"

// merge copies the keys of aliased maps. The map's own keys take precedence, then the first alias's.
func (r *reader) merge(m *Node, place int, merge *ast.MappingValueNode) {
	aliases := []ast.Node{merge.Value}
	if list, ok := merge.Value.(*ast.SequenceNode); ok {
		aliases = list.Values
	}

	have := map[string]bool{}
	for _, p := range m.Pairs {
		have[p.Key] = true
	}

	var merged []Pair
	for _, alias := range aliases {
		// Duplicate keys in inline maps would go undetected.
		if _, ok := alias.(*ast.AliasNode); !ok {
			r.refuse(merge.Key, "<< must be followed by aliases", mergeForm)
			return
		}

		named := r.node(alias)
		if r.fault == nil && named.Kind != Mapping {
			r.refuse(alias, "<< must be followed by an alias of a map", mergeForm)
		}

		r.merged += len(named.Pairs)
		if r.merged > maxMerged {
			r.refuse(merge.Key, fmt.Sprintf("the keys << of this file expand to more than %d keys", maxMerged),
				"write the keys without <<, or split the file")
		}

		if r.fault != nil {
			return
		}

		for _, p := range named.Pairs {
			if !have[p.Key] {
				have[p.Key] = true
				merged = append(merged, p)
			}
		}
	}

	m.Pairs = slices.Insert(m.Pairs, place, merged...)
}

// Normalize returns the file's text without its byte order mark and with LF line breaks.
func Normalize(data []byte, o *Options) (string, *Fault) {
	if len(data) > o.MaxBytes {
		return "", &Fault{Text: fmt.Sprintf("the file is larger than %d bytes", o.MaxBytes), Hint: o.HintTooMuch}
	}
	text := strings.TrimPrefix(string(data), "\uFEFF")
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "", &Fault{Text: "the file is not UTF-8 text", Hint: "save it as UTF-8"}
	}
	return lineEnds.Replace(text), nil
}

// Read applies [Normalize] and [Map].
func Read(data []byte, o *Options) (*Node, *Fault) {
	text, fault := Normalize(data, o)
	if fault != nil {
		return nil, fault
	}
	return Map(text, o)
}

// Map parses a document whose top level is a mapping and whose line breaks are LF. It returns nil for an empty
// document.
func Map(text string, o *Options) (*Node, *Fault) {
	tokens := lexer.Tokenize(text)
	if fault := o.checkTokens(tokens); fault != nil {
		return nil, fault
	}

	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, o.syntaxFault(err)
	}

	y := reader{anchors: map[string]*Node{}}
	var root *Node
	for _, doc := range file.Docs {
		switch doc.Body.(type) {
		case nil, *ast.CommentGroupNode, *ast.DirectiveNode, *ast.NullNode:
			continue
		}

		n := y.node(doc.Body)
		switch {
		case y.fault != nil:
			return nil, y.fault
		case root != nil:
			return nil, n.fault("the file has a second document", "keep one: delete the line --- between them")
		case n.Kind != Mapping:
			return nil, n.fault("not a "+o.Form, o.HintForm)
		}

		root = n
	}

	return root, nil
}

func (n *Node) fault(text, hint string) *Fault {
	return &Fault{Line: n.Line, Column: n.Column, Text: text, Hint: hint}
}
