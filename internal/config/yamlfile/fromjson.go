package yamlfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"unicode/utf8"
)

// FromJSON returns a JSON document as YAML, its keys in the same order. Texts that YAML could take for something else
// are quoted as in JSON. The error says what is wrong with the JSON.
func FromJSON(data []byte) ([]byte, error) {
	w := &jsonReader{dec: json.NewDecoder(bytes.NewReader(data))}
	w.dec.UseNumber()
	if err := w.value("", atStart); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	if _, err := w.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("invalid JSON: more than one document")
	}
	return w.out.Bytes(), nil
}

// position is what stands on the line before a value.
type position int

const (
	atStart position = iota
	afterKey
	afterDash
)

// jsonReader writes what it reads as YAML.
type jsonReader struct {
	dec *json.Decoder
	out bytes.Buffer
}

// value writes the next value. indent begins its lines but the one that holds a dash.
func (j *jsonReader) value(indent string, at position) error {
	t, err := j.dec.Token()
	if err != nil {
		return err
	}

	open, nested := t.(json.Delim)
	if !nested || !j.dec.More() {
		text := scalar(t)
		if nested {
			text = map[json.Delim]string{'{': "{}", '[': "[]"}[open]
		}
		if at == afterKey {
			j.out.WriteByte(' ')
		}
		j.out.WriteString(text + "\n")
	} else {
		if at == afterKey {
			j.out.WriteByte('\n')
		}
		for first := at == afterDash; j.dec.More(); first = false {
			if !first {
				j.out.WriteString(indent)
			}
			if err := j.entry(indent, open == '{'); err != nil {
				return err
			}
		}
	}

	if nested {
		_, err = j.dec.Token() // its end
	}

	return err
}

// entry writes one entry of a map or a list.
func (j *jsonReader) entry(indent string, keyed bool) error {
	if !keyed {
		j.out.WriteString("- ")
		return j.value(indent+"  ", afterDash)
	}
	key, err := j.dec.Token()
	if err != nil {
		return err
	}
	j.out.WriteString(scalar(key) + ":")
	return j.value(indent+"  ", afterKey)
}

// unquoted are texts that every reader of YAML takes for texts, unless they are one of isWord.
var (
	unquoted = regexp.MustCompile(`^-{0,2}[A-Za-z/][A-Za-z0-9_./@()'+=-]*(?:[ :]{0,1}[A-Za-z0-9_./@()'+=-]+)*$`)
	isWord   = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|y|n|null)$`)
)

// Text is a text as it stands in a file of YAML: as it is where that is clear, else quoted as in JSON.
func Text(text string) string {
	if unquoted.MatchString(text) && !isWord.MatchString(text) {
		return text
	}
	return quoted(text)
}

// scalar is a token of JSON that is neither the start nor the end of an object or a list.
func scalar(t json.Token) string {
	if text, ok := t.(string); ok {
		return Text(text)
	}
	return quoted(t)
}

// quoted is a scalar as in JSON, which YAML reads as the same value.
func quoted(t json.Token) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(t) // a scalar has no error
	text := string(bytes.TrimSpace(b.Bytes()))

	// JSON may hold these as they are. YAML reads some as line ends and refuses the others.
	return unprintable.ReplaceAllStringFunc(text, func(s string) string {
		r, _ := utf8.DecodeRuneInString(s)
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// unprintable are the characters that YAML takes only as escapes, beside those that JSON escapes too.
var unprintable = regexp.MustCompile(`[\x{7f}-\x{9f}\x{feff}\x{fffe}\x{ffff}]`)
