package filter

import (
	"bytes"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// These functions expect valid JSON without surrounding white space.

// matchesJSON matches an object, or an array that contains a matching object. Other values match like an object without
// fields.
func (o *object) matchesJSON(value []byte) bool {
	switch {
	case len(value) > 0 && value[0] == '{':
		return o.match(func(f *field) bool { return f.matchesJSON(lookUp(value, f.name)) })
	case len(value) > 0 && value[0] == '[':
		hasObject, matched := false, false
		eachChild(value, func(_, element []byte) {
			if element[0] == '{' || element[0] == '[' {
				hasObject = true
				matched = matched || o.matchesJSON(element)
			}
		})
		if hasObject {
			return matched
		}
	}
	return o.match((*field).matchesAbsence)
}

// matchesJSON matches a field's value; nil means that the field is missing.
func (f *field) matchesJSON(value []byte) bool {
	if f.nested != nil {
		return f.nested.matchesJSON(value)
	}
	found, matched := f.matchesLeaves(value)
	return matched || !found && f.absent
}

// matchesLeaves sets found if value is or contains anything other than objects and arrays.
func (f *field) matchesLeaves(value []byte) (found, matched bool) {
	switch {
	case len(value) == 0 || value[0] == '{':
		return false, false
	case value[0] != '[':
		return true, f.matchesLeaf(leafOf(value))
	}
	eachChild(value, func(_, element []byte) {
		if !matched {
			var one bool
			one, matched = f.matchesLeaves(element)
			found = found || one
		}
	})
	return found, matched
}

func leafOf(value jsontext.Value) leaf {
	if value.Kind() == kindString {
		return leaf{kind: kindString, text: string(unquote(value))}
	}
	return leaf{kind: value.Kind(), text: string(value)}
}

// unquote decodes a JSON string, replacing invalid UTF-8 with U+FFFD. The result may alias quoted.
func unquote(quoted []byte) []byte {
	if plain := quoted[1 : len(quoted)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return plain
	}
	text, _ := jsontext.AppendUnquote(nil, quoted)
	return text
}

// lookUp returns a field's value or nil; of duplicates, the last one, as in most JSON parsers.
func lookUp(object []byte, name string) (found []byte) {
	eachChild(object, func(quoted, value []byte) {
		if string(unquote(quoted)) == name {
			found = value
		}
	})
	return found
}

func eachChild(container []byte, visit func(quotedName, value []byte)) {
	d := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	d.Reset(bytes.NewBuffer(container), lenient)

	// The decoder may overwrite its values, so next returns a slice of container.
	next := func() []byte {
		value, _ := d.ReadValue()
		end := d.InputOffset()
		return container[end-int64(len(value)) : end]
	}

	start, _ := d.ReadToken()
	for d.PeekKind() != start.Kind()+2 { // '{'+2 == '}' and '['+2 == ']'
		var name []byte
		if start.Kind() == kindObject {
			name = next()
		}
		visit(name, next())
	}
}

var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}
