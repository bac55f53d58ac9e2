package web

import (
	"bytes"
	"encoding/json"
	"strings"
)

const (
	maxTreeDepth = 32    // levels of a tree that are shown
	maxTreeNodes = 2_000 // values of a tree that are shown
	openDepth    = 3     // levels that are open at first
	openMembers  = 50    // in a value that is open at first
)

// jsonNode is one value of a JSON document, for a page that folds it.
type jsonNode struct {
	Name string // as JSON has it, with quotes; "" for an item of a list and for the document
	// Kind is "object", "array", "string", "number" or "word", and Text a value of the last three, numbers
	// as they were written.
	Kind, Text string
	Nodes      []*jsonNode
	Open       bool
	Cut        bool // there may be more than Nodes
}

// Brackets are those around a value that is shown as a tree.
func (n *jsonNode) Brackets() string {
	if n.Kind == "object" {
		return "{}"
	}
	return "[]"
}

// Folds reports whether there is something to fold.
func (n *jsonNode) Folds() bool { return len(n.Nodes) > 0 || n.Cut }

// Members says how many values it has, as far as that is known.
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

// treeReader makes the tree of a document.
type treeReader struct {
	decoder *json.Decoder
	left    int  // how many values may still be shown
	isFull  bool // there are more than that: reading has ended
	cut     bool // something is left out
}

// treeOf returns the tree of a text, with at most [maxTreeNodes] values in at most [maxTreeDepth] levels. whole is
// whether that is all of it. The tree is nil for a text that is not one JSON document.
func treeOf(text string) (tree *jsonNode, whole bool) {
	if !json.Valid([]byte(text)) {
		return nil, false
	}
	r := &treeReader{decoder: json.NewDecoder(strings.NewReader(text)), left: maxTreeNodes}
	r.decoder.UseNumber()
	tree = r.value(0)
	return tree, !r.cut
}

// value reads the next value. The document is known to be valid, so that the decoder does not fail.
func (r *treeReader) value(depth int) *jsonNode {
	r.left--
	token, _ := r.decoder.Token()
	switch token := token.(type) {
	case json.Delim:
		n := &jsonNode{Kind: "array"}
		if token == '{' {
			n.Kind = "object"
		}
		r.members(n, depth+1)
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

// members reads the values of an object or a list, until there are too many.
func (r *treeReader) members(n *jsonNode, depth int) {
	for r.decoder.More() {
		if depth == maxTreeDepth {
			n.Cut, r.cut = true, true
			r.skip()
			return
		}
		if r.isFull = r.left == 0; r.isFull {
			break
		}
		name := ""
		if n.Kind == "object" {
			token, _ := r.decoder.Token()
			text, _ := token.(string)
			name = jsonText(text)
		}
		member := r.value(depth)
		member.Name = name
		if n.Nodes = append(n.Nodes, member); r.isFull {
			break
		}
	}
	if n.Cut = r.isFull; n.Cut {
		r.cut = true
		return
	}
	_, _ = r.decoder.Token() // the bracket at the end
}

// skip reads up to the end of the object or list that has begun.
func (r *treeReader) skip() {
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

// jsonText is a text in quotes, with letters as they are and what does not print escaped.
func jsonText(text string) string {
	out := new(bytes.Buffer)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false) // the page does that
	_ = encoder.Encode(text)     // strings always encode
	return strings.TrimSuffix(out.String(), "\n")
}
