package yamlfile

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Edit is a change to one value of a file.
type Edit struct {
	// Path leads to the value: map keys and list indexes, from 0.
	Path []string
	// Value is plain text; nil removes the key, and its map if that becomes empty and is not the top-level map.
	Value *string
}

// EditedLine is a line that an edit removed or added.
type EditedLine struct {
	Edit int
	// Line counts from 1: in the new file if Added, otherwise in the previous file.
	Line  int
	Added bool
	Text  string
}

// Apply edits a file line by line, preserving comments, order and formatting. It fails unless the result parses as the
// previous document with exactly these changes.
func Apply(data []byte, o *Options, edits []Edit) ([]byte, []EditedLine, *Fault) {
	if _, fault := Normalize(data, o); fault != nil {
		return nil, nil, fault
	}

	e := newEditor(string(data), o)
	for i, edit := range edits {
		before, fault := Map(e.text(), o)
		if fault != nil {
			return nil, nil, fault
		}

		e.number = i
		if fault := e.applyEdit(before, edit); fault != nil {
			return nil, nil, fault
		}

		after, fault := Map(e.text(), o)
		if fault != nil || !sameNode(withEdit(before, edit), after) {
			return nil, nil, notEditable(keyLine(before, edit.Path))
		}
	}

	changed := []byte(e.mark + e.file())
	if _, fault := Normalize(changed, o); fault != nil {
		return nil, nil, fault
	}

	return changed, e.changes(), nil
}

func notEditable(line int) *Fault {
	return &Fault{Line: line, Text: "this key cannot be changed without reformatting the file",
		Hint: "edit the file by hand, or put each key on its own line first"}
}

type fileLine struct {
	text, end string
	was       int // in the previous file, from 1; 0 for an added line
	edit      int // the edit that added or removed the line
	removed   bool
}

type editor struct {
	o      *Options
	mark   string      // byte order mark or ""
	lines  []*fileLine // of the new file
	all    []*fileLine // including the removed ones, each before the line that replaces it
	number int         // of the current edit
}

func newEditor(text string, o *Options) *editor {
	e := &editor{o: o}
	if rest, found := strings.CutPrefix(text, "\uFEFF"); found {
		e.mark, text = "\uFEFF", rest
	}

	for number := 1; text != ""; number++ {
		i := strings.IndexAny(text, "\r\n")
		l := &fileLine{text: text, was: number}
		if i >= 0 {
			l.text, l.end = text[:i], text[i:i+1]
			if strings.HasPrefix(text[i:], "\r\n") {
				l.end = "\r\n"
			}
		}
		text = text[len(l.text)+len(l.end):]
		e.lines = append(e.lines, l)
	}

	e.all = slices.Clone(e.lines)
	return e
}

func (e *editor) file() string {
	var b strings.Builder
	for _, l := range e.lines {
		b.WriteString(l.text)
		b.WriteString(l.end)
	}
	return b.String()
}

func (e *editor) text() string { return lineEnds.Replace(e.file()) }

func (e *editor) changes() (changed []EditedLine) {
	number := 0
	for _, l := range e.all {
		if !l.removed {
			number++
		}
		switch {
		case l.removed && l.was > 0:
			changed = append(changed, EditedLine{Edit: l.edit, Line: l.was, Text: l.text})
		case !l.removed && l.was == 0:
			changed = append(changed, EditedLine{Edit: l.edit, Line: number, Added: true, Text: l.text})
		}
	}
	return changed
}

// replace counts lines from 1. If end is from-1, it only inserts.
func (e *editor) replace(from, end int, texts ...string) {
	var put []*fileLine
	lineEnd := "\n"
	if len(e.lines) > 0 && e.lines[0].end != "" {
		lineEnd = e.lines[0].end
	}

	for _, text := range texts {
		put = append(put, &fileLine{text: text, end: lineEnd, edit: e.number})
	}

	if from > 1 && len(put) > 0 && e.lines[from-2].end == "" {
		e.lines[from-2].end, put[len(put)-1].end = lineEnd, ""
	}

	for _, l := range e.lines[from-1 : end] {
		l.removed = true
		l.edit = e.number
	}

	at := 0
	if end > 0 {
		at = slices.Index(e.all, e.lines[end-1]) + 1
	}
	for from > end && at < len(e.all) && e.all[at].removed { // earlier edits removed the lines that were here
		at++
	}
	e.all = slices.Insert(e.all, at, put...)
	e.lines = slices.Replace(e.lines, from-1, end, put...)
}

func (e *editor) applyEdit(root *Node, edit Edit) *Fault {
	if root == nil {
		root = &Node{Kind: Mapping}
	}

	parent, key := parentOf(root, edit.Path), edit.Path[len(edit.Path)-1]
	if parent == nil {
		return notEditable(root.Line)
	}

	var found []int
	for i, p := range parent.Pairs {
		if p.Key == key {
			found = append(found, i)
		}
	}
	isMissing := len(found) == 0

	switch {
	case len(found) > 1:
		return &Fault{Line: parent.Pairs[found[1]].Line, Text: key + " is twice in the file", Hint: "keep only one of the lines"}
	case isMissing && edit.Value == nil:
		return nil
	case edit.Value == nil && len(parent.Pairs) == 1 && len(edit.Path) > 1:
		return e.applyEdit(root, Edit{Path: edit.Path[:len(edit.Path)-1]})
	case edit.Value == nil:
		return e.remove(parent, found[0])
	case !isMissing && parent.Pairs[found[0]].Value.hasText(*edit.Value):
		return nil
	}

	text, fault := e.scalarText(*edit.Value)
	switch {
	case fault != nil:
		return fault
	case isMissing:
		e.add(parent, len(edit.Path) == 1, key+": "+text)
		return nil
	}
	return e.set(&parent.Pairs[found[0]], text)
}

func (n *Node) hasText(text string) bool { return n.Kind == Scalar && n.Text == text }

// parentOf returns nil if a value on the path is missing or empty.
func parentOf(n *Node, path []string) *Node {
	for _, step := range path[:len(path)-1] {
		if n = child(n, step); n == nil || len(n.Pairs)+len(n.Items) == 0 {
			return nil
		}
	}
	return n
}

func child(n *Node, step string) *Node {
	if n.Kind == Sequence {
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Items) {
			return n.Items[i]
		}
		return nil
	}
	return n.Get(step)
}

func (e *editor) add(parent *Node, top bool, line string) {
	column, after := 1, len(e.lines)
	if len(parent.Pairs) > 0 {
		last := &parent.Pairs[len(parent.Pairs)-1]
		column = last.Column
		if !top {
			after = e.endLine(last)
		}
	}
	e.replace(after+1, after, strings.Repeat(" ", column-1)+line)
}

func (e *editor) endLine(p *Pair) int {
	end, indent := lastLine(p.Value, p.Line), p.Column-1
	for i := p.Line + 1; i <= len(e.lines); i++ {
		text := e.lines[i-1].text
		inner := strings.TrimLeft(text, " ")
		deep := len(text) - len(inner)
		part := deep > indent || p.Value.Kind == Sequence && deep == indent && strings.HasPrefix(inner, "-")
		switch {
		case inner == "" || strings.HasPrefix(inner, "#") && (!part || !p.Value.Block):
			continue // blank lines and comments belong to the value only if more of it follows
		case !part:
			return end
		}
		end = max(end, i)
	}

	return end
}

func lastLine(n *Node, line int) int {
	line = max(line, n.Line)
	for _, item := range n.Items {
		line = lastLine(item, line)
	}
	for _, p := range n.Pairs {
		line = lastLine(p.Value, max(line, p.Line))
	}
	return line
}

// set keeps a comment after a single-line value.
func (e *editor) set(p *Pair, text string) *Fault {
	line := e.lines[p.Line-1].text
	at := indexAfterColon(line, p)
	if at < 0 {
		return notEditable(p.Line)
	}

	end, rest := e.endLine(p), ""
	if end == p.Line {
		rest = commentAfterValue(line[at:])
	}

	blanks := line[at : len(line)-len(strings.TrimLeft(line[at:], " \t"))]
	if strings.TrimSpace(line[at:]) == rest || blanks == "" {
		blanks = " "
	}
	if strings.HasPrefix(rest, "#") {
		rest = " " + rest
	}

	e.replace(p.Line, end, line[:at]+blanks+text+rest)
	return nil
}

func indexAfterColon(line string, p *Pair) int {
	runes := []rune(line)
	if p.Column < 1 || p.Column > len(runes) {
		return -1
	}

	at := len(string(runes[:p.Column-1]))
	rest := line[at:]
	switch {
	case strings.HasPrefix(rest, p.Key):
		rest = rest[len(p.Key):]
	case len(rest) > 1 && (rest[0] == '"' || rest[0] == '\'') && strings.HasPrefix(rest[1:], p.Key+rest[:1]):
		rest = rest[len(p.Key)+2:]
	default:
		return -1
	}

	trimmed := strings.TrimLeft(rest, " \t")
	if !strings.HasPrefix(trimmed, ":") {
		return -1
	}

	return len(line) - len(trimmed) + 1
}

var inlineValue = regexp.MustCompile(`^[ \t]*("(?:\\.|[^"\\])*"|'(?:''|[^'])*')?`)

func commentAfterValue(text string) string {
	at := len(inlineValue.FindString(text))
	for ; at < len(text); at++ {
		if text[at] == '#' && (at == 0 || text[at-1] == ' ' || text[at-1] == '\t') {
			return text[len(strings.TrimRight(text[:at], " \t")):]
		}
	}
	return ""
}

// remove removes a key. If it follows a list item's dash, the next key takes its place on that line.
func (e *editor) remove(parent *Node, i int) *Fault {
	p := &parent.Pairs[i]
	end := e.endLine(p)
	line := e.lines[p.Line-1].text
	prefix := line[:min(p.Column-1, len(line))]
	if strings.TrimLeft(prefix, " ") == "" {
		e.replace(p.Line, end)
		return nil
	}

	if i+1 == len(parent.Pairs) || parent.Pairs[i+1].Line != end+1 || strings.Trim(prefix, " -") != "" {
		return notEditable(p.Line)
	}

	next := e.lines[end].text
	e.replace(p.Line, end+1, prefix+strings.TrimLeft(next, " "))
	return nil
}

var plainScalar = regexp.MustCompile(`^[A-Za-z0-9./_+][A-Za-z0-9 ./_+:@=,?&%~-]*$`)

// scalarText returns a form that is read as value, even before a comment.
func (e *editor) scalarText(value string) (string, *Fault) {
	forms := []string{"'" + strings.ReplaceAll(value, "'", "''") + "'", jsonText(value)}
	if plainScalar.MatchString(value) {
		forms = slices.Insert(forms, 0, value)
	}
	for _, form := range forms {
		root, fault := Map("k: "+form+" # c\n", e.o)
		if fault == nil && root != nil && len(root.Pairs) == 1 && !strings.ContainsAny(form, "\r\n") {
			if n := root.Pairs[0].Value; n.Kind == Scalar && n.Text == value {
				return form, nil
			}
		}
	}
	return "", &Fault{Text: "this value does not fit on one line", Hint: "use plain text"}
}

// withEdit returns the document that an edit must result in.
func withEdit(n *Node, edit Edit) *Node {
	copied := Node{Kind: Mapping}
	if n != nil {
		copied = *n
	}

	step := edit.Path[0]
	if copied.Kind == Sequence {
		copied.Items = slices.Clone(copied.Items)
		if i, err := strconv.Atoi(step); err == nil && i < len(copied.Items) && len(edit.Path) > 1 {
			copied.Items[i] = withEdit(copied.Items[i], Edit{edit.Path[1:], edit.Value})
		}
		return &copied
	}

	copied.Pairs = slices.Clone(copied.Pairs)
	i := slices.IndexFunc(copied.Pairs, func(p Pair) bool { return p.Key == step })
	remove := func() { copied.Pairs = slices.Delete(copied.Pairs, i, i+1) }
	switch {
	case len(edit.Path) > 1 && i >= 0:
		if below := withEdit(copied.Pairs[i].Value, Edit{edit.Path[1:], edit.Value}); edit.Value == nil &&
			len(below.Pairs)+len(below.Items) == 0 {
			remove()
		} else {
			copied.Pairs[i].Value = below
		}
	case edit.Value == nil && i >= 0:
		remove()
	case edit.Value == nil:
	case i >= 0:
		copied.Pairs[i].Value = &Node{Text: *edit.Value}
	default:
		copied.Pairs = append(copied.Pairs, Pair{Key: step, Value: &Node{Text: *edit.Value}})
	}

	return &copied
}

// sameNode ignores positions and the final newlines of block scalars.
func sameNode(a, b *Node) bool {
	empty := func(n *Node) bool { return n == nil || n.Kind == Mapping && len(n.Pairs) == 0 }
	if empty(a) || empty(b) {
		return empty(a) && empty(b)
	}
	textOf := func(n *Node) string {
		if n.Block {
			return strings.TrimRight(n.Text, "\n")
		}
		return n.Text
	}
	return a.Kind == b.Kind && a.Tag == b.Tag && textOf(a) == textOf(b) && slices.EqualFunc(a.Items, b.Items, sameNode) &&
		slices.EqualFunc(a.Pairs, b.Pairs, func(a, b Pair) bool { return a.Key == b.Key && sameNode(a.Value, b.Value) })
}

func keyLine(n *Node, path []string) int {
	line := 0
	for _, step := range path {
		if n == nil {
			return line
		}
		for _, p := range n.Pairs {
			if p.Key == step {
				line = p.Line
			}
		}
		n = child(n, step)
	}
	return line
}
