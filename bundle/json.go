package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"tendril/yamlfile"
)

// parseJSON reads a JSON document, in which the order of keys, their places and
// the text of numbers are kept.
func parseJSON(data []byte) (*yamlfile.Node, *yamlfile.Fault) {
	r := &jsonReader{data: data, decoder: json.NewDecoder(bytes.NewReader(data))}
	r.decoder.UseNumber()
	root, err := r.value(0)
	if err == nil {
		if _, err = r.next(); errors.Is(err, io.EOF) {
			return root, nil
		}
		if err == nil {
			err = errors.New("something follows the end of the document")
		}
	}
	var problem *jsonDepthError
	if errors.As(err, &problem) {
		return nil, &yamlfile.Fault{Line: r.line, Column: r.column, Text: problem.Error(), Hint: settingsForm().HintForm}
	}
	line, column := r.line, r.column
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line, column = position(data, int(syntax.Offset)-1)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file ends too early")
	}
	return nil, &yamlfile.Fault{Line: line, Column: column, Text: "invalid JSON: " + yamlfile.Printable(err.Error()),
		Hint: "fix it there, or write it as YAML"}
}

// jsonDepthError says that a document is nested too deep.
type jsonDepthError struct{}

func (*jsonDepthError) Error() string {
	return fmt.Sprintf("maps and lists are nested deeper than %d", maxDepth)
}

// jsonReader follows where in the text the decoder is.
type jsonReader struct {
	data    []byte
	decoder *json.Decoder
	// offset is where line and column, those of the last token, were counted.
	offset       int
	line, column int
}

// next returns the next token and notes where it begins.
func (r *jsonReader) next() (json.Token, error) {
	begin := int(r.decoder.InputOffset())
	for begin < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[begin]) >= 0 {
		begin++
	}
	if r.line == 0 {
		r.line, r.column = 1, 1
	}
	// Counted on from the last token, so that long files take linear time.
	lines, column := position(r.data[r.offset:], begin-r.offset)
	if lines > 1 {
		r.column = column
	} else {
		r.column += column - 1
	}
	r.line, r.offset = r.line+lines-1, begin
	return r.decoder.Token()
}

func (r *jsonReader) value(depth int) (*yamlfile.Node, error) {
	token, err := r.next()
	if err != nil {
		return nil, err
	}
	n := &yamlfile.Node{Line: r.line, Column: r.column}
	switch t := token.(type) {
	case nil:
		n.Kind = yamlfile.Null
	case string:
		n.Text = t
	case json.Delim:
		if depth >= maxDepth {
			return nil, &jsonDepthError{}
		}
		if t == '[' {
			n.Kind = yamlfile.Sequence
			return n, r.sequence(n, depth+1)
		}
		n.Kind = yamlfile.Mapping
		return n, r.mapping(n, depth+1)
	default: // json.Number, bool
		n.Text = fmt.Sprint(t)
	}
	return n, nil
}

func (r *jsonReader) sequence(n *yamlfile.Node, depth int) error {
	for r.decoder.More() {
		item, err := r.value(depth)
		if err != nil {
			return err
		}
		n.Items = append(n.Items, item)
	}
	_, err := r.next()
	return err
}

func (r *jsonReader) mapping(n *yamlfile.Node, depth int) error {
	for r.decoder.More() {
		token, err := r.next()
		if err != nil {
			return err
		}
		key, _ := token.(string) // the decoder accepts no other key
		p := yamlfile.Pair{Key: key, Line: r.line, Column: r.column}
		if p.Value, err = r.value(depth); err != nil {
			return err
		}
		n.Pairs = append(n.Pairs, p)
	}
	_, err := r.next()
	return err
}
