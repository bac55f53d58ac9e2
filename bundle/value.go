package bundle

import (
	"encoding/json"
	"errors"
	"strings"
)

// maxValue bounds a value that was written as a map or a list: aliases can make it
// far larger than its file.
const maxValue = 64 << 10

var errValue = errors.New("is longer than 64 KiB")

// value returns the text of a scalar, and JSON for a map or a list.
func (n *node) value() (string, error) {
	if n.kind == scalar || n.kind == null {
		return n.text, nil
	}
	var b strings.Builder
	if !n.writeJSON(&b) {
		return "", errValue
	}
	return b.String(), nil
}

// writeJSON writes a node as JSON, in which true, 60 and null stay what they are.
// It reports whether that was not too long.
func (n *node) writeJSON(b *strings.Builder) bool {
	switch n.kind {
	case scalar:
		b.WriteString(plainJSON(n.text))
	case null:
		b.WriteString("null")
	case sequence:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			if !item.writeJSON(b) {
				return false
			}
		}
		b.WriteByte(']')
	case mapping:
		b.WriteByte('{')
		for i, p := range n.pairs {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quoted(p.key) + ":")
			if !p.value.writeJSON(b) {
				return false
			}
		}
		b.WriteByte('}')
	}
	return b.Len() <= maxValue
}

// plainJSON is a scalar in JSON.
func plainJSON(text string) string {
	if json.Valid([]byte(text)) && !strings.ContainsAny(text, "\"[{ \t\r\n") {
		return text
	}
	return quoted(text)
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""` // cannot be: any text has an encoding
	}
	return string(raw)
}
