package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"tendril/internal/config/yamlfile"
)

const (
	maxDocument = 128 << 10
	maxTokens   = 20000
	// CloudFormation resources have about 15 levels.
	maxDepth = 32
)

func settingsForm() *yamlfile.Options {
	return &yamlfile.Options{
		MaxBytes: maxDocument, MaxTokens: maxTokens, MaxDepth: maxDepth, Form: "map of settings",
		HintTooMuch: "split the settings into several files, and put scripts and data into their own files",
		HintForm:    `start with a key and a colon, such as "option_settings:"`,
		HintSyntax:  `indent with spaces, write a space after each colon, and quote values that contain ": " or " #"`,
	}
}

type document struct {
	// path identifies the file in problems, and name, relative to the bundle's folder, in findings.
	path, name string
	problems   []Problem
	findings   []Finding
	settings   []Setting
}

const maxProblems = 20

func (d *document) refuse(line, column int, hint, format string, args ...any) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems,
			Problem{Where: yamlfile.Place(d.path, line, column), Text: fmt.Sprintf(format, args...), Hint: hint})
	}
}

func (d *document) notUsed(line int, format string, args ...any) {
	d.findings = append(d.findings, Finding{File: d.name, Line: line, What: fmt.Sprintf(format, args...)})
}

func (d *document) refuseKey(p yamlfile.Pair, hint, format string, args ...any) {
	d.refuse(p.Line, p.Column, hint, format, args...)
}

func (d *document) keys(data []byte) []yamlfile.Pair {
	if root := d.parse(data); root != nil {
		return root.Pairs
	}
	return nil
}

func (d *document) parse(data []byte) *yamlfile.Node {
	root, fault := readMap(data)
	if fault != nil {
		d.refuse(fault.Line, fault.Column, fault.Hint, "%s", fault.Text)
		return nil
	}
	if root == nil || !d.admitKeys(root, map[*yamlfile.Node]bool{}) {
		return nil
	}
	return root
}

func readMap(data []byte) (*yamlfile.Node, *yamlfile.Fault) {
	form := settingsForm()
	text, fault := yamlfile.Normalize(data, form)
	if fault != nil {
		return nil, fault
	}
	if begin := strings.TrimLeft(text, " \t\n"); strings.HasPrefix(begin, "{") {
		// {a: b} is YAML but not JSON
		root, fault := parseJSON([]byte(text))
		if fault == nil || strings.HasPrefix(strings.TrimLeft(begin[1:], " \t\n"), `"`) {
			return root, fault
		}
	}
	return yamlfile.Map(text, form)
}

// admitKeys rejects duplicate keys, because parsers disagree about which one applies.
func (d *document) admitKeys(n *yamlfile.Node, seen map[*yamlfile.Node]bool) bool {
	if seen[n] {
		return true
	}

	seen[n] = true
	lines := map[string]int{}
	good := true
	for _, p := range n.Pairs {
		if first, twice := lines[p.Key]; twice {
			d.refuseKey(p, "merge the two: one of them would be lost", "%q is already on line %d",
				yamlfile.Short(p.Key), first)
			good = false
		} else {
			lines[p.Key] = p.Line
		}
		good = d.admitKeys(p.Value, seen) && good
	}

	for _, item := range n.Items {
		good = d.admitKeys(item, seen) && good
	}

	return good
}

func position(text []byte, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	line = bytes.Count(before, []byte("\n")) + 1
	return line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// Aliases can make JSON values far larger than their file.
const maxValue = 64 << 10

var errValue = errors.New("is longer than 64 KiB")

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

// writeJSON writes booleans, numbers and nulls without quotes. It returns false if the result is too long.
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

func plainJSON(text string) string {
	if json.Valid([]byte(text)) && !strings.ContainsAny(text, "\"[{ \t\r\n") {
		return text
	}
	return quoted(text)
}

func quoted(text string) string {
	raw, _ := json.Marshal(text) // every string can be encoded
	return string(raw)
}

var errDepth = fmt.Errorf("maps and lists nested deeper than %d", maxDepth)

func parseJSON(data []byte) (*yamlfile.Node, *yamlfile.Fault) {
	r := &jsonReader{data: data, decoder: json.NewDecoder(bytes.NewReader(data)), line: 1, column: 1}
	r.decoder.UseNumber()
	root, err := r.value(0)
	if err == nil {
		if _, err = r.next(); errors.Is(err, io.EOF) {
			return root, nil
		}
		if err == nil {
			err = errors.New("text after the end of the document")
		}
	}

	line, column := r.line, r.column
	if errors.Is(err, errDepth) {
		return nil, &yamlfile.Fault{Line: line, Column: column, Text: err.Error(), Hint: settingsForm().HintForm}
	}

	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line, column = position(data, int(syntax.Offset)-1)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file ends unexpectedly")
	}

	return nil, &yamlfile.Fault{Line: line, Column: column, Text: "invalid JSON: " + yamlfile.Printable(err.Error()),
		Hint: "fix it there, or write it as YAML"}
}

type jsonReader struct {
	data         []byte
	decoder      *json.Decoder
	offset       int
	line, column int
}

func (j *jsonReader) next() (json.Token, error) {
	begin := int(j.decoder.InputOffset())
	for begin < len(j.data) && bytes.IndexByte([]byte(" \t\r\n,:"), j.data[begin]) >= 0 {
		begin++
	}

	// Counting from the last token takes only linear time overall.
	lines, column := position(j.data[j.offset:], begin-j.offset)
	if lines > 1 {
		j.column = column
	} else {
		j.column += column - 1
	}

	j.line, j.offset = j.line+lines-1, begin
	return j.decoder.Token()
}

func (j *jsonReader) value(depth int) (*yamlfile.Node, error) {
	token, err := j.next()
	if err != nil {
		return nil, err
	}

	n := &yamlfile.Node{Line: j.line, Column: j.column}
	switch t := token.(type) {
	case nil:
		n.Kind = yamlfile.Null
	case string:
		n.Text = t
	case json.Delim:
		if depth >= maxDepth {
			return nil, errDepth
		}
		if t == '[' {
			n.Kind = yamlfile.Sequence
			return n, j.sequence(n, depth+1)
		}
		n.Kind = yamlfile.Mapping
		return n, j.mapping(n, depth+1)
	default:
		n.Text = fmt.Sprint(t)
	}

	return n, nil
}

func (j *jsonReader) sequence(n *yamlfile.Node, depth int) error {
	for j.decoder.More() {
		item, err := j.value(depth)
		if err != nil {
			return err
		}
		n.Items = append(n.Items, item)
	}
	_, err := j.next()
	return err
}

func (j *jsonReader) mapping(n *yamlfile.Node, depth int) error {
	for j.decoder.More() {
		token, err := j.next()
		if err != nil {
			return err
		}
		key, _ := token.(string) // the decoder accepts only string keys
		p := yamlfile.Pair{Key: key, Line: j.line, Column: j.column}
		if p.Value, err = j.value(depth); err != nil {
			return err
		}
		n.Pairs = append(n.Pairs, p)
	}

	_, err := j.next()
	return err
}
