package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParseDocumentBounds: what would keep a parser busy is refused before it
// is parsed, with the line.
func TestParseDocumentBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"nested lists":  {strings.Repeat("[", 60000), "f:1: more than 4096 words and signs"},
		"nested maps":   {strings.Repeat("{", 60000), "f:1: more than 4096 words and signs"},
		"list of lists": {strings.Repeat("- ", 30000), "f:1: more than 4096 words and signs"},
		"many lines":    {strings.Repeat("a: 1\n", 2000), "f:1366: more than 4096 words and signs"},
		"many aliases":  {"a: &a x\nb: [" + strings.Repeat("*a,", 1000) + "]\n", "f:1: anchors and aliases are not read"},
		"too long":      {strings.Repeat("#", maxFile+1), "f: the file has more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entries, problems := parseDocument("f", []byte(c.text))
			if len(entries) > 0 || len(problems) != 1 || problems[0].String() != c.want {
				t.Errorf("got %v, %v; want %s", entries, problems, c.want)
			}
		})
	}
	if _, problems := parseDocument("f", []byte("# "+strings.Repeat("x", maxFile-3)+"\n")); len(problems) > 0 {
		t.Errorf("a file of exactly 64 KiB is refused: %v", problems)
	}
}

// TestParseDocumentKeepsText: a value is what was written, whatever type YAML
// sees in it.
func TestParseDocumentKeepsText(t *testing.T) {
	t.Parallel()
	entries, problems := parseDocument("f", []byte(`a: 000000000012
b: off
c: 0x10
d: 1_000
e: -5
f: 1.50
g: .inf
h: "a: b"
i: 'it''s'
j: two words # and a comment
k: |
  block
l: >
  folded
  text
m: ~
n:
o: [200, "2xx", 'off']
p: http://h:80/x?y=z
sqsd: {q: 1, r: [a]}
`))
	want := []entry{
		{key: "a", text: "000000000012", line: 1}, {key: "b", text: "off", line: 2}, {key: "c", text: "0x10", line: 3},
		{key: "d", text: "1_000", line: 4}, {key: "e", text: "-5", line: 5}, {key: "f", text: "1.50", line: 6},
		{key: "g", text: ".inf", line: 7}, {key: "h", text: "a: b", line: 8}, {key: "i", text: "it's", line: 9},
		{key: "j", text: "two words", line: 10}, {key: "k", text: "block", line: 11}, {key: "l", text: "folded text", line: 13},
		{key: "m", line: 16, null: true}, {key: "n", line: 17, null: true}, {key: "o", text: "200,2xx,off", line: 18},
		{key: "p", text: "http://h:80/x?y=z", line: 19}, {key: "q", text: "1", line: 20, sqsd: true}, {key: "r", text: "a", line: 20, sqsd: true},
	}
	if diff := cmp.Diff(want, entries, cmp.AllowUnexported(entry{})); diff != "" || len(problems) > 0 {
		t.Errorf("%v\n%s", problems, diff)
	}
}
