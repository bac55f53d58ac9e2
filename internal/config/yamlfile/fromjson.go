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

// FromJSON converts JSON to YAML and preserves the order of keys.
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

type position int

const (
	atStart position = iota
	afterKey
	afterDash
)

type jsonReader struct {
	dec *json.Decoder
	out bytes.Buffer
}

func (j *jsonReader) value(indent string, at position) error {
	t, err := j.dec.Token()
	if err != nil {
		return err
	}

	open, nested := t.(json.Delim)
	switch {
	case !nested:
		j.writeValue(scalarText(t), at)
		return nil
	case j.dec.More():
		err = j.entries(indent, open == '{', at)
	case open == '{':
		j.writeValue("{}", at)
	default:
		j.writeValue("[]", at)
	}
	if err != nil {
		return err
	}

	_, err = j.dec.Token() // the closing } or ]
	return err
}

func (j *jsonReader) writeValue(text string, at position) {
	if at == afterKey {
		j.out.WriteByte(' ')
	}
	j.out.WriteString(text + "\n")
}

func (j *jsonReader) entries(indent string, keyed bool, at position) error {
	if at == afterKey {
		j.out.WriteByte('\n')
	}
	for first := at == afterDash; j.dec.More(); first = false {
		if !first {
			j.out.WriteString(indent)
		}
		if err := j.entry(indent, keyed); err != nil {
			return err
		}
	}
	return nil
}

func (j *jsonReader) entry(indent string, keyed bool) error {
	if !keyed {
		j.out.WriteString("- ")
		return j.value(indent+"  ", afterDash)
	}
	key, err := j.dec.Token()
	if err != nil {
		return err
	}
	j.out.WriteString(scalarText(key) + ":")
	return j.value(indent+"  ", afterKey)
}

// unquoted matches text that every YAML parser reads as a string, except words that isWord matches.
var (
	unquoted = regexp.MustCompile(`^-{0,2}[A-Za-z/][A-Za-z0-9_./@()'+=-]*(?:[ :]{0,1}[A-Za-z0-9_./@()'+=-]+)*$`)
	isWord   = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|y|n|null)$`)
)

// Text returns a string as a YAML scalar, quoted as in JSON if it would otherwise be ambiguous.
func Text(text string) string {
	if unquoted.MatchString(text) && !isWord.MatchString(text) {
		return text
	}
	return jsonText(text)
}

func scalarText(t json.Token) string {
	if text, ok := t.(string); ok {
		return Text(text)
	}
	return jsonText(t)
}

// jsonText returns JSON, which YAML parsers read as the same value.
func jsonText(t json.Token) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(t)
	text := string(bytes.TrimSpace(b.Bytes()))

	// JSON allows these characters unescaped, but YAML parsers treat some as line breaks and reject the others.
	return unprintable.ReplaceAllStringFunc(text, func(s string) string {
		r, _ := utf8.DecodeRuneInString(s)
		return fmt.Sprintf(`\u%04x`, r)
	})
}

var unprintable = regexp.MustCompile(`[\x{7f}-\x{9f}\x{feff}\x{fffe}\x{ffff}]`)
