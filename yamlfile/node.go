package yamlfile

// Options bound a file and name what it is. The limits must be set.
type Options struct {
	// Plain refuses anchors, aliases, tags, merge keys, "? " keys and directives.
	Plain bool
	// MaxBytes, MaxTokens and MaxDepth bound the file, the words and signs in it, and how deep maps and lists are
	// nested. Parsers take quadratic time and more for some files.
	MaxBytes, MaxTokens, MaxDepth int
	// What the file is not when it is too large, too deep or no map: "no settings file".
	What string
	// HintTooMuch, HintForm and HintSyntax say what to do about a file that is too large,
	// that is no map, and that is no YAML.
	HintTooMuch, HintForm, HintSyntax string
}

// Kind is what a [Node] is.
type Kind int

// The kinds of nodes.
const (
	Scalar Kind = iota
	Null
	Sequence
	Mapping
)

// Node is one value of a document, with the text as it was written. A node that an alias names is shared, never
// copied; merge keys copy keys, up to a bound, and share their values.
type Node struct {
	Kind         Kind
	Text         string // of a scalar
	Block        bool   // a scalar after | or >
	Tag          string // such as !Ref; "" for none
	Line, Column int
	Items        []*Node // of a sequence
	Pairs        []Pair  // of a mapping
}

// Pair is one key of a mapping and its value.
type Pair struct {
	Key          string
	Line, Column int
	Value        *Node
}

// Get returns the value of a key, nil when there is none.
func (n *Node) Get(key string) *Node {
	for i := range n.Pairs {
		if n.Pairs[i].Key == key {
			return n.Pairs[i].Value
		}
	}
	return nil
}

// Fault is a [Problem] of a file that cannot be read, with its place in numbers: from 1, 0 for the whole file.
type Fault struct {
	Line, Column int
	Text, Hint   string
}
