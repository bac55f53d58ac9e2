package yamlfile

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

func settingsForm() *Options {
	return &Options{PlainOnly: true, MaxBytes: 64 << 10, MaxTokens: 4096, MaxDepth: 8, Form: "map of settings",
		HintTooMuch: "less", HintForm: "form", HintSyntax: "syntax"}
}

func TestEditsLeaveEverythingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, path, value, want string }{
		"in an empty file":                     {"", "a", "1", "a: 1\n"},
		"below comments":                       {"# top\n", "a", "x y", "# top\na: x y\n"},
		"without an end of line":               {"b: 2", "a", "1", "b: 2\na: 1"},
		"with CR LF":                           {"b: 2\r\n# c\r\n", "a", "1", "b: 2\r\n# c\r\na: 1\r\n"},
		"after a byte order mark":              {"\uFEFFa: 2\n", "a", "1", "\uFEFFa: 1\n"},
		"a value and its comment":              {"a:   2   # two\nb: 3\n", "a", "1", "a:   1   # two\nb: 3\n"},
		"a value in quotes":                    {"a: 'it''s # 2' # two\n", "a", "1", "a: 1 # two\n"},
		"a key in quotes":                      {"\"a\": \"2\"\n", "a", "1", "\"a\": 1\n"},
		"no value":                             {"a: # none\nb: 3\n", "a", "1", "a: 1 # none\nb: 3\n"},
		"a list in one line":                   {"a: [1, 2] # two\n", "a", "3", "a: 3 # two\n"},
		"a list below":                         {"a:\n- 1\n# one\n- 2\n\n# b\nb: 3\n", "a", "1,2", "a: 1,2\n\n# b\nb: 3\n"},
		"a list of several lines":              {"a: [1,\n  2]\nb: 3\n", "a", "1", "a: 1\nb: 3\n"},
		"a block of text":                      {"a: |\n  # x\n  y\n# b\nb: 3\n", "a", "1", "a: 1\n# b\nb: 3\n"},
		"text that needs quotes":               {"a: 2\n", "a", "x: #y", "a: 'x: #y'\n"},
		"text with both sorts of quotes":       {"a: 2\n", "a", `'"`, `a: '''"'` + "\n"},
		"a word of YAML":                       {"", "a", "null", "a: 'null'\n"},
		"a number with zeros":                  {"", "a", "000012", "a: 000012\n"},
		"the last line of several":             {"a: 1\nb: 2\n", "b", "-", "a: 1\n"},
		"the last line without an end of line": {"a: 1\nb: 2", "b", "-", "a: 1\n"},
		"the same value in quotes":             {"a: '1'\n", "a", "1", "a: '1'\n"},
		"nothing to remove":                    {"b: 3\n", "a", "-", "b: 3\n"},
		"remove a key and keep comments":       {"# a\na: 2 # two\n# b\nb: 3\n", "a", "-", "# a\n# b\nb: 3\n"},
		"remove the only key":                  {"# a\na: 2\n", "a", "-", "# a\n"},
		"remove a list":                        {"b: 3\na:\n  - 1\n  - 2\nc: 4\n", "a", "-", "b: 3\nc: 4\n"},
		"a key of a map":                       {"s:\n  P: /a\nb: 3\n", "s P", "/b", "s:\n  P: /b\nb: 3\n"},
		"add to a map": {"s:\n    P: /a\n# b\nb: 3\n", "s Q", "1",
			"s:\n    P: /a\n    Q: 1\n# b\nb: 3\n"},
		"remove the only key of a map": {"s:\n  P: /a\nb: 3\n", "s P", "-", "b: 3\n"},
		"an item's key": {"q:\n- name: a\n  p: 1\n- name: b\n", "q 0 p", "2",
			"q:\n- name: a\n  p: 2\n- name: b\n"},
		"add to an item": {"q:\n  - name: a\n  - name: b\nc: 1\n", "q 1 p", "2",
			"q:\n  - name: a\n  - name: b\n    p: 2\nc: 1\n"},
		"the first key of an item":              {"q:\n  - p: 1\n    name: a\n", "q 0 p", "-", "q:\n  - name: a\n"},
		"a map in one line":                     {"{a: 1, b: 2}\n", "a", "2", "?"},
		"a map in one line to which is added":   {"{a: 1}\n", "b", "2", "?"},
		"a map in one line without a key":       {"{a: 1, b: 2}\n", "a", "-", "?"},
		"an item that is no map":                {"q: [a]\n", "q 0 p", "-", "?"},
		"a key that is there twice":             {"a: 1\na: 2\n", "a", "3", "?"},
		"text of two lines":                     {"a: 1\n", "a", "x\ny", "a: \"x\\ny\"\n"},
		"a file that is larger than it may be":  {"", "a", strings.Repeat("x", 64<<10), "?"},
		"a file that cannot be read":            {"a: [\n", "a", "1", "?"},
		"behind the end of the document":        {"a: 1\n...\n", "b", "1", "?"},
		"the map of a list that is in one line": {"q: [{name: a, p: 1}]\n", "q 0 p", "2", "?"},
	} {
		edit := Edit{Path: strings.Fields(c.path), Value: &c.value}
		if c.value == "-" {
			edit.Value = nil
		}
		got, _, fault := Apply([]byte(c.file), settingsForm(), []Edit{edit})
		switch {
		case c.want == "?" && (fault == nil || fault.Text == "" || fault.Hint == "" || got != nil):
			t.Errorf("%s: %q, %+v; want a problem with a hint", name, got, fault)
		case c.want != "?" && fault != nil:
			t.Errorf("%s: %+v", name, fault)
		case c.want != "?" && string(got) != c.want:
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestEditedLinesAreListed(t *testing.T) {
	t.Parallel()
	one, two := "one", "two"
	file := "# f\na: 1\nlist:\n  - x\n  - y\nb: 2\n"
	_, lines, fault := Apply([]byte(file), settingsForm(), []Edit{
		{[]string{"c"}, &one}, {[]string{"list"}, nil}, {[]string{"b"}, &two}, {[]string{"a"}, &one}, {[]string{"a"}, &two}})
	if fault != nil {
		t.Fatal(fault)
	}
	var got strings.Builder
	for _, l := range lines {
		sign := "-"
		if l.Added {
			sign = "+"
		}
		fmt.Fprintf(&got, "%s%d %s (%d)\n", sign, l.Line, l.Text, l.Edit)
	}
	want := "-2 a: 1 (3)\n+2 a: two (4)\n-3 list: (1)\n-4   - x (1)\n-5   - y (1)\n-6 b: 2 (2)\n" +
		"+3 b: two (2)\n+4 c: one (0)\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAddedLinesFollowRemovedOnes(t *testing.T) {
	t.Parallel()
	value := "3"
	_, lines, fault := Apply([]byte("a: 1\nb: 2\n"), settingsForm(), []Edit{{[]string{"b"}, nil}, {[]string{"c"}, &value}})
	if fault != nil {
		t.Fatal(fault)
	}
	want := []EditedLine{{Line: 2, Text: "b: 2"}, {Edit: 1, Line: 2, Added: true, Text: "c: 3"}}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

var (
	simpleFile  = regexp.MustCompile(`^([a-z]+: [a-z0-9/]+( # [a-z]+)?\n|# [a-z ]*\n|\n)*$`)
	simpleKey   = regexp.MustCompile(`^[a-z]+$`)
	commentLine = regexp.MustCompile(`(?m)^#.*$`)
)

// FuzzApply checks that other parsers see exactly the change, that comments between keys survive, and that simple files
// can always be edited.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{"", "a: b\n", "# c\na: 1 # d\n\nb:\n- 1\n- 2\n", "a: |\n  # x\n", "{a: 1}",
		"a: [1,\n 2]\r\nb: 'x'",
		"s:\n  P: /a\n", "\uFEFFa: \"1\"", "a:\n  b: c\n# d\n", "a: x\n  y\n  # z\n", "---\na: 1\n...\n",
		"é: 1\na: ü # ö\n"} {
		f.Add(seed, "a", "2", false)
		f.Add(seed, "b", "it's # \"x\": y", false)
		f.Add(seed, "a", "", true)
	}
	f.Fuzz(func(t *testing.T, file, key, value string, remove bool) {
		if !simpleKey.MatchString(key) || len(file) > 1<<10 {
			return
		}
		edit := Edit{Path: []string{key}, Value: &value}
		if remove {
			edit.Value = nil
		}
		root, fault := Read([]byte(file), settingsForm())
		got, _, refused := Apply([]byte(file), settingsForm(), []Edit{edit})
		if refused != nil {
			if fault == nil && simpleFile.MatchString(file) && simpleKey.MatchString(value) &&
				len(topKeys(root)) == pairs(root) {
				t.Fatalf("%q: %s to %q is refused: %+v", file, key, value, refused)
			}
			return
		}
		old, now := map[string]any{}, map[string]any{}
		text := func(file string) []byte { return []byte(lineEnds.Replace(strings.TrimPrefix(file, "\uFEFF"))) }
		if yaml.Unmarshal(text(file), &old) != nil {
			return // for example, duplicate keys, which other parsers reject
		}
		if err := yaml.Unmarshal(text(string(got)), &now); err != nil {
			t.Fatalf("%q became %q, which others cannot read: %v", file, got, err)
		}
		after, fault := Read(got, settingsForm())
		if fault != nil {
			t.Fatalf("%q became %q: %+v", file, got, fault)
		}
		if n := get(after, key); remove && n != nil || !remove && (n == nil || n.Kind != Scalar || n.Text != value) {
			t.Fatalf("%q became %q: %s is %+v", file, got, key, n)
		}
		delete(old, key)
		delete(now, key)
		asText := func(m map[string]any) string { return strings.ReplaceAll(fmt.Sprint(m), "\n", "") }
		if asText(old) != asText(now) {
			t.Fatalf("%q became %q: %v became %v", file, got, old, now)
		}
		if simpleFile.MatchString(file) {
			was, is := commentLine.FindAllString(file, -1), commentLine.FindAllString(string(got), -1)
			if diff := cmp.Diff(was, is); diff != "" {
				t.Fatalf("%q became %q, whose comments differ\n%s", file, got, diff)
			}
		}
	})
}

func topKeys(n *Node) map[string]int {
	keys := map[string]int{}
	for i := range pairs(n) {
		keys[n.Pairs[i].Key]++
	}
	return maps.Clone(keys)
}

func pairs(n *Node) int {
	if n == nil {
		return 0
	}
	return len(n.Pairs)
}

func get(n *Node, key string) *Node {
	if n == nil {
		return nil
	}
	return n.Get(key)
}
