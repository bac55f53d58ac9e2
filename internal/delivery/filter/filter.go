package filter

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"tendril/queue"
)

const maxPatterns = 10 // as in Lambda

const (
	bodyKey       = "body"
	attributesKey = "messageAttributes"
)

// Filter accepts messages that match at least one of its patterns. It is safe for concurrent use.
type Filter struct{ patterns []*object }

// Parse compiles a pattern, or the FilterCriteria of an event source mapping: {"Filters": [{"Pattern": "..."}]}.
// Errors have the line and column.
func Parse(text string) (*Filter, error) {
	p, root, wrong := parseJSON(text)
	if wrong != nil {
		return nil, wrong
	}
	if root.kind == kindObject && len(root.object) == 1 && root.object[0].name == "Filters" {
		f, wrong := p.criteria(root.object[0].value)
		if wrong != nil {
			return nil, wrong
		}
		return f, nil
	}
	pattern, wrong := p.message(root)
	if wrong != nil {
		return nil, wrong
	}
	return &Filter{[]*object{pattern}}, nil
}

func (p *parser) criteria(list node) (*Filter, *patternError) {
	if list.kind != kindArray || len(list.array) == 0 || len(list.array) > maxPatterns {
		return nil, p.fail(list.offset, "Filters must be a list of 1 to %d objects with a Pattern", maxPatterns)
	}

	f := &Filter{}
	for i, item := range list.array {
		if len(item.object) != 1 || item.object[0].name != "Pattern" || item.object[0].value.kind != kindString {
			return nil, p.fail(item.offset, `write {"Pattern": "..."} with the pattern as a string`)
		}

		at := item.object[0].value
		inner, root, wrong := parseJSON(at.text)
		var pattern *object
		if wrong == nil {
			pattern, wrong = inner.message(root)
		}
		if wrong != nil {
			return nil, p.fail(at.offset, "pattern %d at %v", i+1, wrong)
		}

		f.patterns = append(f.patterns, pattern)
	}
	return f, nil
}

func (p *parser) message(root node) (*object, *patternError) {
	if root.kind != kindObject {
		return nil, p.fail(root.offset, `a pattern must be an object, such as {"body": {"kind": ["order"]}}`)
	}
	if wrong := p.checkKeys(root); wrong != nil {
		return nil, wrong
	}
	return p.object(root)
}

// A pattern with an unknown top-level key would match nothing, so all messages would be deleted.
func (p *parser) checkKeys(n node) *patternError {
	for _, m := range n.object {
		switch {
		case m.name == orKey && isOr(m.value):
			for _, branch := range m.value.array {
				if wrong := p.checkKeys(branch); wrong != nil {
					return wrong
				}
			}
		case m.name == attributesKey:
			if wrong := p.checkAttributes(m.value); wrong != nil {
				return wrong
			}
		case m.name != bodyKey:
			return p.fail(m.offset, `unknown key %q: a pattern may have "body" and "messageAttributes"`, m.name)
		}
	}
	return nil
}

func (p *parser) checkAttributes(n node) *patternError {
	if n.kind != kindObject {
		return p.fail(n.offset, `messageAttributes must be an object, such as {"kind": {"stringValue": ["order"]}}`)
	}
	for _, attribute := range n.object {
		switch {
		case attribute.name == orKey && isOr(attribute.value):
			for _, branch := range attribute.value.array {
				if wrong := p.checkAttributes(branch); wrong != nil {
					return wrong
				}
			}
			continue
		case attribute.value.kind != kindObject:
			return p.fail(attribute.value.offset, `a message attribute must be an object: write {"stringValue": [...]}`)
		}

		for _, m := range attribute.value.object {
			if m.name != "stringValue" && m.name != "dataType" {
				return p.fail(m.offset, `unknown key %q: a message attribute has "stringValue" and "dataType"`, m.name)
			}
		}
	}
	return nil
}

// Match reports whether m matches a pattern.
func (f *Filter) Match(m *queue.Message) bool {
	var body body
	return slices.ContainsFunc(f.patterns, func(o *object) bool {
		return o.match(func(f *field) bool {
			if f.name == bodyKey {
				return body.of(m).matches(f)
			}
			return f.nested.match(func(f *field) bool { return matchesAttribute(f.nested, m.Attributes, f.name) })
		})
	})
}

type body struct {
	read bool
	text string
	json []byte // object or array; nil for other text
}

func (b *body) of(m *queue.Message) *body {
	if b.read {
		return b
	}
	b.read, b.text = true, m.Body
	if start := strings.TrimLeft(m.Body, jsonBlanks); strings.HasPrefix(start, "{") || strings.HasPrefix(start, "[") {
		if text := jsontext.Value(strings.TrimRight(start, jsonBlanks)); text.IsValid(lenient) {
			b.json = text
		}
	}
	return b
}

func (b *body) matches(f *field) bool {
	if f.nested == nil {
		return b.json == nil && f.matchesLeaf(leaf{kind: kindString, text: b.text})
	}
	return b.json != nil && f.nested.matchesJSON(b.json)
}

func matchesAttribute(o *object, attributes []queue.Attribute, name string) bool {
	i := slices.IndexFunc(attributes, func(a queue.Attribute) bool { return a.Name == name })
	if i < 0 {
		return o.match((*field).matchesAbsence)
	}

	a := &attributes[i]
	return o.match(func(f *field) bool {
		switch {
		case f.nested != nil:
			return f.matchesAbsence()
		case f.name == "dataType":
			return f.matchesLeaf(leaf{kind: kindString, text: a.Type})
		case !a.IsText():
			return f.absent
		case a.Type == "Number" || strings.HasPrefix(a.Type, "Number."):
			return f.matchesLeaf(leaf{kind: kindNumber, text: a.Value, alsoString: true})
		}
		return f.matchesLeaf(leaf{kind: kindString, text: a.Value})
	})
}
