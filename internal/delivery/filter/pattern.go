package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxPattern is the most bytes of a pattern, and maxDepth how deep it may be nested.
const (
	maxPattern = 64 << 10
	maxDepth   = 32
)

// jsonBlanks are the characters that JSON may have between two tokens.
const jsonBlanks = " \t\r\n"

// patternError says what is wrong with a pattern, and where.
type patternError struct {
	// Line and Column are where the wrong part begins, from 1; columns count bytes.
	Line, Column int
	// Text says what is wrong.
	Text string
}

// Error puts the place in front.
func (e *patternError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Text) }

// node is a value of a pattern with the place where it begins.
type node struct {
	offset int
	// One of these; none for null.
	object []member
	array  []node
	scalar any // string, json.Number or bool
	kind   byte
}

// member is a name and its value in an object.
type member struct {
	offset int
	name   string
	value  node
}

// The kinds of a node.
const (
	isNull   = 'n'
	isObject = '{'
	isArray  = '['
	isString = '"'
	isNumber = '0'
	isBool   = 't'
)

// parser reads the JSON of a pattern.
type parser struct {
	text   string
	decode *json.Decoder
}

func (p *parser) fail(offset int, format string, args ...any) *patternError {
	before := p.text[:min(offset, len(p.text))]
	line := strings.Count(before, "\n")
	column := len(before) - strings.LastIndexByte(before, '\n')
	return &patternError{Line: line + 1, Column: column, Text: fmt.Sprintf(format, args...)}
}

// next is where the next token begins, behind blanks, commas and colons.
func (p *parser) next() int {
	offset := int(p.decode.InputOffset())
	return offset + len(p.text[offset:]) - len(strings.TrimLeft(p.text[offset:], jsonBlanks+",:"))
}

func (p *parser) token() (json.Token, *patternError) {
	offset := p.next()
	if token, err := p.decode.Token(); err == nil {
		return token, nil
	}
	return nil, p.fail(offset, "invalid JSON")
}

// parseJSON reads a text that is one JSON value.
func parseJSON(text string) (*parser, node, *patternError) {
	p := &parser{text: text, decode: json.NewDecoder(strings.NewReader(text))}
	p.decode.UseNumber()
	if len(text) > maxPattern {
		return p, node{}, p.fail(0, "%d bytes are more than the %d of a pattern", len(text), maxPattern)
	}
	if !json.Valid([]byte(text)) { // the decoder of tokens takes some that is not
		return p, node{}, p.invalid()
	}
	root, wrong := p.value(0)
	return p, root, wrong
}

// invalid finds the place where a text stops being JSON.
func (p *parser) invalid() *patternError {
	var syntax *json.SyntaxError
	var raw json.RawMessage
	err := json.Unmarshal([]byte(p.text), &raw)
	if errors.As(err, &syntax) && !strings.Contains(err.Error(), "unexpected end") {
		return p.fail(max(int(syntax.Offset)-1, 0), "invalid JSON")
	}
	return p.fail(len(p.text), "the JSON ends too early")
}

func (p *parser) value(depth int) (node, *patternError) {
	n := node{offset: p.next(), kind: isNull}
	if depth > maxDepth {
		return n, p.fail(n.offset, "nested deeper than %d", maxDepth)
	}
	token, wrong := p.token()
	if wrong != nil {
		return n, wrong
	}
	switch t := token.(type) {
	case json.Delim:
		n.kind = byte(t)
		for p.decode.More() && wrong == nil {
			if t == '{' {
				wrong = p.member(&n, depth)
				continue
			}
			var item node
			item, wrong = p.value(depth + 1)
			n.array = append(n.array, item)
		}
		if wrong == nil {
			_, wrong = p.token()
		}
	case string:
		n.kind, n.scalar = isString, t
	case json.Number:
		n.kind, n.scalar = isNumber, t
	case bool:
		n.kind, n.scalar = isBool, t
	}
	return n, wrong
}

func (p *parser) member(n *node, depth int) *patternError {
	m := member{offset: p.next()}
	token, wrong := p.token()
	if wrong != nil {
		return wrong
	}
	m.name, _ = token.(string) // the decoder refuses other names
	if slices.ContainsFunc(n.object, func(o member) bool { return o.name == m.name }) {
		return p.fail(m.offset, "%q is there twice", m.name)
	}
	m.value, wrong = p.value(depth + 1)
	n.object = append(n.object, m)
	return wrong
}
