package bundle

import (
	"encoding/json"
	"errors"
	"strings"

	"tendril/yamlfile"
)

// maxValue bounds a value that was written as a map or a list: aliases can make it
// far larger than its file.
const maxValue = 64 << 10

var errValue = errors.New("is longer than 64 KiB")

// valueOf returns the text of a scalar, and JSON for a map or a list.
func valueOf(n *yamlfile.Node) (string, error) {
	if n.Kind == yamlfile.Scalar || n.Kind == yamlfile.Null {
		return n.Text, nil
	}
	var b strings.Builder
	if !writeJSON(&b, n) {
		return "", errValue
	}
	return b.String(), nil
}

// writeJSON writes a node as JSON, in which true, 60 and null stay what they are.
// It reports whether that was not too long.
func writeJSON(b *strings.Builder, n *yamlfile.Node) bool {
	switch n.Kind {
	case yamlfile.Scalar:
		b.WriteString(plainJSON(n.Text))
	case yamlfile.Null:
		b.WriteString("null")
	case yamlfile.Sequence:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			if !writeJSON(b, item) {
				return false
			}
		}
		b.WriteByte(']')
	case yamlfile.Mapping:
		b.WriteByte('{')
		for i, p := range n.Pairs {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quoted(p.Key) + ":")
			if !writeJSON(b, p.Value) {
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
