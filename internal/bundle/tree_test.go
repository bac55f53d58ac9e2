package bundle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/config/yamlfile"
)

func TestDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	aliases := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'z'; c++ {
		aliases += fmt.Sprintf("%c: &%[1]c [%s]\n", c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 9))
	}
	explicit := "" // nested "? " keys, with comments before their colons
	for i := range 200 {
		explicit += fmt.Sprintf("%*s? a\n# what\n%[1]*s:\n", 2*i, "")
	}
	for name, c := range map[string]struct{ text, want string }{
		"too long":         {strings.Repeat("#", maxDocument+1), "f: the file is larger than 131072 bytes"},
		"just long enough": {"a: |\n" + strings.Repeat("  x\n", maxDocument/4-2), ""},
		"words":            {"a: [" + strings.Repeat("x,", maxTokens) + "]", "more than 20000 words and symbols"},
		"brackets":         {"a: " + strings.Repeat("[", 10000), "f:1:35: maps and lists nested deeper than 32"},
		"braces":           {"a: " + strings.Repeat("{", 10000), "nested deeper than 32"},
		"lists of lists":   {"a:\n  " + strings.Repeat("- ", 9000), "nested deeper than 32"},
		"JSON lists":       {`{"a":` + strings.Repeat("[", 60000), "f:1:37: maps and lists nested deeper than 32"},
		"JSON maps":        {strings.Repeat(`{"a":`, 20000), "nested deeper than 32"},
		"aliases of lists": {aliases, ""},
		"alias of itself":  {"a: &a [*a]", "f:1:8: alias used before its definition"},
		"no UTF-8":         {"a: \xff", "f: the file is not UTF-8 text"},
		"UTF-16":           {"\xff\xfea\x00:\x00", "f: the file is not UTF-8 text"},
		"NUL":              {"a: \x00", "f: the file is not UTF-8 text"},
		"keys below keys":  {explicit, "nested deeper than 32"},
		"complex key":      {"? [a, b]\n: c", `f:1:1: a key that begins with "? " must be plain text`},
		"items for a key":  {"? - a\n: c", `f:1:1: a key that begins with "? " must be plain text`},
		"block for a key":  {"? |\n  a\n: c", `f:1:1: a key that begins with "? " must be plain text`},
		"map for a key":    {"x: y\n? a: b\n", `f:2:1: a key that begins with "? " must be plain text`},
		"map as well":      {"? # what\n a : b\n", `f:1:1: a key that begins with "? " must be plain text`},
		"key of a key":     {"? ? a\n: b\n", `f:1:1: a key that begins with "? " must be plain text`},
		"alias for a key":  {"a: &x y\n? *x\n: b\n", `f:2:1: a key that begins with "? " must be plain text`},
		"name of a key":    {"? &x a\n: b\n", `f:1:1: a key that begins with "? " must be plain text`},
		"tag of a key":     {"? !!str a\n: b\n", `f:1:1: a key that begins with "? " must be plain text`},
		"key of nothing":   {"? # what", `f:1:1: a key that begins with "? " must be plain text`},
		"colon elsewhere":  {"a:\n  ? b\n: c", `f:2:3: a key that begins with "? " must be plain text`},
		"list for a key":   {"[a, b]: c", "f:1:7: invalid YAML"},
		"merge keys":       {merges(100, maxMerged/100), ""},
		"one more": {merges(100, maxMerged/100+1),
			"f:203:5: the keys << of this file expand to more than 10000 keys"},
		"merge of itself":  {"a: &a {<<: *a}", "alias used before its definition"},
		"merge twice":      {"a: &a {x: y}\nb:\n  <<: *a\n  z: w\n  ? <<\n  : *a", "f:5:3: duplicate <<, first on line 3"},
		"merge of a text":  {"a: &a x\nb: {<<: *a}", "f:2:9: << must be followed by an alias of a map"},
		"merge of a list":  {"a: &a [{}]\nb: {<<: *a}", "f:2:9: << must be followed by an alias of a map"},
		"merge of nothing": {"a:\n  <<:\n", "f:2:3: << must be followed by aliases"},
		"merge of a map":   {"<<: [{a: b, a: c}]", "f:1:1: << must be followed by aliases"},
		"YAML 1.2":         {"# what\n%YAML 1.2 # it is\n# says\n---\na: b", ""},
		"YAML 1.3":         {"%YAML 1.3\n---\na: b", "f:1:1: this directive is not supported"},
		"directive":        {"%TAG ! tag:example.com,2026:\n---\na: b", "f:1:1: this directive is not supported"},
		"two directives":   {"%YAML 1.1\n%TAG ! tag:example.com,2026:\n---\na: b", "f:1:1: this directive is not supported"},
		"directive alone":  {"%YAML 1.1", "f:1:1: this directive is not supported"},
		"no line below":    {"%YAML 1.1\na: b", "f:1:1: this directive is not supported"},
		"not at the top":   {"a: b\n...\n%YAML 1.1\n---\nc: d", "f:3:1: this directive is not supported"},
		"two JSON values":  {"{\"a\": 1}\n{\"b\": 2}", "f:2:1: invalid JSON: text after the end of the document"},
		"byte order mark":  {"\uFEFFa: b", ""},
		"Windows":          {"a:\r\n  b: c\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := document{path: "f", name: "f"}
			root := d.parse([]byte(c.text))
			switch {
			case c.want == "" && (root == nil || len(d.problems) > 0):
				t.Errorf("refused: %v", d.problems)
			case c.want != "" &&
				(root != nil || len(d.problems) != 1 || !strings.Contains(d.problems[0].String(), c.want) ||
					d.problems[0].Hint == ""):
				t.Errorf("got %v, %v; want %s, and a hint", root, d.problems, c.want)
			}
		})
	}
}

const maxMerged = 10_000

func merges(keys, n int) string {
	var b strings.Builder
	b.WriteString("all: &all\n")
	for i := range keys {
		fmt.Fprintf(&b, "  k%d: x\n", i)
	}
	b.WriteString("list:\n")
	for range n {
		b.WriteString("  - <<: *all\n")
	}
	return b.String()
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"YAML": "a:\n  b:   c\n  \"ü\": d\n  e:\n  - f\n  -   g: h\n",
		"keys with ?": "? a\n:\n  ? b\n  : c\n  # what\n  ? \"ü\"\n  # what\n  : # what\n    d\n" +
			"  e: [? f : g, {? h : i}]\n  ? j\n  ? k\n    l\n  :\n  - m\n",
		"merge keys": "x: &x {a: b, c: d}\ny: &y\n  a: e\n  f:\n  - g\nz:\n  c: h\n  <<: [*x, *y]\n  i: j\nv: {? <<\n" +
			" : *y}\nw: {\"<<\": x}\n",
		"JSON": "{\"a\":\n {\"b\":   \"c\",\n  \"ü\": \"d\", \"e\"\n  : [ \"f\",\n  {   \"g\": \"h\"}]}}\n",
	} {
		d := document{path: "f", name: "f"}
		root := d.parse([]byte(text))
		if root == nil {
			t.Fatalf("%s: %v", name, d.problems)
		}
		var found []string
		var walk func(n *yamlfile.Node)
		walk = func(n *yamlfile.Node) {
			for _, p := range n.Pairs {
				found = append(found, fmt.Sprintf("%s %d:%d", p.Key, p.Line, p.Column))
				walk(p.Value)
			}
			for _, item := range n.Items {
				walk(item)
			}
			if n.Kind == yamlfile.Scalar {
				found = append(found, fmt.Sprintf("%s %d:%d", n.Text, n.Line, n.Column))
			}
		}
		walk(root)
		want := map[string][]string{
			"YAML": {"a 1:1", "b 2:3", "c 2:8", "ü 3:3", "d 3:8", "e 4:3", "f 5:5", "g 6:7", "h 6:10"},
			"keys with ?": {"a 1:3", "b 3:5", "c 4:5", "ü 6:5", "d 9:5", "e 10:3", "f 10:9", "g 10:13", "h 10:19", "i 10:23",
				"j 11:5", "k l 12:5", "m 15:5"},
			"merge keys": {
				"x 1:1", "a 1:8", "b 1:11", "c 1:14", "d 1:17", "y 2:1", "a 3:3", "e 3:6", "f 4:3", "g 5:5",
				"z 6:1", "c 7:3", "h 7:6", "a 1:8", "b 1:11", "f 4:3", "g 5:5", "i 9:3", "j 9:6",
				"v 10:1", "a 3:3", "e 3:6", "f 4:3", "g 5:5", "w 12:1", "<< 12:5", "x 12:11",
			},
			"JSON": {"a 1:2", "b 2:3", "c 2:10", "ü 3:3", "d 3:8", "e 3:13", "f 4:7", "g 5:7", "h 5:12"},
		}[name]
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLineEnds(t *testing.T) {
	t.Parallel()
	text := "# first\na:\n  b: \"one\n    two\n\n    three\"\n  c: 'one\n    two'\n  d: \"one \\\n    two\"\n  e: |\n" +
		"    one\n\n    two\n  f: >-\n    one\n    two\n" +
		"  g: one\n    two # what\n  # last\n  h:\n  - i\n\n  - {j: k,\n     l: m}\n\nn: o\n"
	read := func(text string) *yamlfile.Node {
		t.Helper()
		d := document{path: "f", name: "f"}
		root := d.parse([]byte(text))
		if root == nil {
			t.Fatalf("%q: %v", text, d.problems)
		}
		return root
	}
	want := read(text)
	if n := want.Get("a").Get("b"); n.Text != "one two\nthree" || n.Line != 3 {
		t.Errorf("got %q in line %d", n.Text, n.Line)
	}
	if n := want.Get("n"); n.Text != "o" || n.Line != 27 {
		t.Errorf("the last value is in line %d", n.Line)
	}
	for name, end := range map[string]string{"CR LF": "\r\n", "CR": "\r"} {
		got := read(strings.ReplaceAll(text, "\n", end))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if n := read("a: b\r\r\nc: d\r\r\n").Get("c"); n.Text != "d" || n.Line != 3 {
		t.Errorf("CR CR LF: %q in line %d", n.Text, n.Line)
	}
}
