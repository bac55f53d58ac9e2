package filter

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxPattern = 64 << 10 // bytes
	maxDepth   = 32
)

const jsonBlanks = " \t\r\n"

type patternError struct {
	// Line and Column count from 1. Column is in bytes.
	Line, Column int
	Text         string
}

func (e *patternError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Text) }

type node struct {
	offset int
	kind   jsontext.Kind
	object []member
	array  []node
	text   string // unquoted string, or JSON text of another kind
	source string
}

type member struct {
	offset int
	name   string
	value  node
}

const (
	kindObject = jsontext.KindBeginObject
	kindArray  = jsontext.KindBeginArray
	kindString = jsontext.KindString
	kindNumber = jsontext.KindNumber
)

// lenient accepts the same input as encoding/json.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

type parser struct {
	text   string
	decode *jsontext.Decoder
}

func (p *parser) fail(offset int, format string, args ...any) *patternError {
	before := p.text[:min(offset, len(p.text))]
	line := strings.Count(before, "\n")
	column := len(before) - strings.LastIndexByte(before, '\n')
	return &patternError{Line: line + 1, Column: column, Text: fmt.Sprintf(format, args...)}
}

func (p *parser) next() int {
	offset := int(p.decode.InputOffset())
	return offset + len(p.text[offset:]) - len(strings.TrimLeft(p.text[offset:], jsonBlanks+",:"))
}

func parseJSON(text string) (*parser, node, *patternError) {
	p := &parser{text: text, decode: jsontext.NewDecoder(strings.NewReader(text), lenient)}
	if len(text) > maxPattern {
		return p, node{}, p.fail(0, "the pattern has %d bytes, the maximum is %d", len(text), maxPattern)
	}
	if wrong := p.checkSyntax(); wrong != nil {
		return p, node{}, wrong
	}

	root, wrong := p.value(0)
	return p, root, wrong
}

func (p *parser) checkSyntax() *patternError {
	d := jsontext.NewDecoder(strings.NewReader(p.text), lenient)
	_, err := d.ReadValue()
	if err == nil {
		if _, err = d.ReadToken(); err == io.EOF {
			return nil
		}
	}

	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return p.fail(len(p.text), "unexpected end of JSON")
	case errors.As(err, &syntax):
		return p.fail(int(syntax.ByteOffset), "invalid JSON")
	}
	return p.fail(int(d.InputOffset())-1, "invalid JSON") // the text contains a second value
}

// checkSyntax has validated the text, so value ignores the decoder's errors.
func (p *parser) value(depth int) (node, *patternError) {
	n := node{offset: p.next()}
	if depth > maxDepth {
		return n, p.fail(n.offset, "nested deeper than %d", maxDepth)
	}

	token, _ := p.decode.ReadToken()
	n.kind = token.Kind()
	n.text = token.String()
	n.source = p.text[n.offset:p.decode.InputOffset()]
	if n.kind != kindObject && n.kind != kindArray {
		return n, nil
	}

	for end := n.kind + 2; p.decode.PeekKind() != end; { // '{'+2 == '}' and '['+2 == ']'
		if wrong := p.child(&n, depth); wrong != nil {
			return n, wrong
		}
	}
	p.decode.ReadToken()
	return n, nil
}

func (p *parser) child(n *node, depth int) (wrong *patternError) {
	m := member{offset: p.next()}
	if n.kind == kindObject {
		token, _ := p.decode.ReadToken()
		m.name = token.String()
		if slices.ContainsFunc(n.object, func(o member) bool { return o.name == m.name }) {
			return p.fail(m.offset, "duplicate key %q", m.name)
		}
	}

	m.value, wrong = p.value(depth + 1)
	if n.kind == kindObject {
		n.object = append(n.object, m)
	} else {
		n.array = append(n.array, m.value)
	}
	return wrong
}
