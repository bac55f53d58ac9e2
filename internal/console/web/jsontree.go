package web

import (
	"bytes"
	"encoding/json"
	"strings"
)

const (
	maxTreeDepth = 32
	maxTreeNodes = 2_000
	openDepth    = 3
	openMembers  = 50
)

type jsonNode struct {
	Name string // "" for array items and the document
	// Kind is "object", "array", "string", "number" or "word". For the last three, Text is the JSON value, with numbers
	// as written in the document.
	Kind, Text string
	Nodes      []*jsonNode
	Open       bool
	Cut        bool
}

func (n *jsonNode) Brackets() string {
	if n.Kind == "object" {
		return "{}"
	}
	return "[]"
}

func (n *jsonNode) Folds() bool { return len(n.Nodes) > 0 || n.Cut }

func (n *jsonNode) Members() string {
	noun := map[string]string{"object": "field", "array": "item"}[n.Kind]
	switch {
	case n.Cut && len(n.Nodes) == 0:
		return noun + "s"
	case n.Cut:
		return "at least " + plural(len(n.Nodes), noun)
	}
	return plural(len(n.Nodes), noun)
}

type treeReader struct {
	decoder *json.Decoder
	left    int  // values that may still be read
	stopped bool // left is 0, and the decoder is still inside brackets
	cut     bool
}

// treeOf returns at most [maxTreeNodes] values on [maxTreeDepth] levels. whole is false if values are missing. The tree
// is nil if text is not a JSON document.
func treeOf(text string) (tree *jsonNode, whole bool) {
	if !json.Valid([]byte(text)) {
		return nil, false
	}
	r := &treeReader{decoder: json.NewDecoder(strings.NewReader(text)), left: maxTreeNodes}
	r.decoder.UseNumber()
	tree = r.readValue(0)
	return tree, !r.cut
}

// readValue ignores the decoder's errors, because the document has been validated.
func (r *treeReader) readValue(depth int) *jsonNode {
	r.left--
	token, _ := r.decoder.Token()
	switch token := token.(type) {
	case json.Delim:
		n := &jsonNode{Kind: "array"}
		if token == '{' {
			n.Kind = "object"
		}
		r.readMembers(n, depth+1)
		n.Open = depth < openDepth && len(n.Nodes) <= openMembers
		return n
	case string:
		return &jsonNode{Kind: "string", Text: jsonText(token)}
	case json.Number:
		return &jsonNode{Kind: "number", Text: token.String()}
	case bool:
		return &jsonNode{Kind: "word", Text: map[bool]string{true: "true", false: "false"}[token]}
	}

	return &jsonNode{Kind: "word", Text: "null"}
}

func (r *treeReader) readMembers(n *jsonNode, depth int) {
	for r.decoder.More() {
		if depth == maxTreeDepth {
			r.truncate(n)
			r.skipRest()
			return
		}
		if r.left == 0 {
			r.stopped = true
			r.truncate(n)
			return
		}

		name := r.readName(n)
		member := r.readValue(depth)
		member.Name = name
		n.Nodes = append(n.Nodes, member)
		if r.stopped {
			r.truncate(n)
			return
		}
	}
	_, _ = r.decoder.Token()
}

func (r *treeReader) truncate(n *jsonNode) {
	n.Cut = true
	r.cut = true
}

func (r *treeReader) readName(n *jsonNode) string {
	if n.Kind != "object" {
		return ""
	}
	token, _ := r.decoder.Token()
	name, _ := token.(string)
	return jsonText(name)
}

func (r *treeReader) skipRest() {
	for open := 1; open > 0; {
		token, err := r.decoder.Token()
		if err != nil {
			return
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
	}
}

func jsonText(text string) string {
	out := new(bytes.Buffer)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false) // the template escapes
	_ = encoder.Encode(text)     // strings always encode
	return strings.TrimSuffix(out.String(), "\n")
}
