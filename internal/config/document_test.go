package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDocumentBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"nested lists":  {strings.Repeat("[", 60000), "f:1: more than 4096 words and symbols"},
		"nested maps":   {strings.Repeat("{", 60000), "f:1: more than 4096 words and symbols"},
		"list of lists": {strings.Repeat("- ", 30000), "f:1: more than 4096 words and symbols"},
		"many lines":    {strings.Repeat("a: 1\n", 2000), "f:1366: more than 4096 words and symbols"},
		"many aliases":  {"a: &a x\nb: [" + strings.Repeat("*a,", 1000) + "]\n", "f:1: anchors and aliases are not supported"},
		"too long":      {strings.Repeat("#", maxFile+1), "f: the file is larger than 65536 bytes"},
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
		{key: "j", text: "two words", line: 10}, {key: "k", text: "block", line: 11},
		{key: "l", text: "folded text", line: 13},
		{key: "m", line: 16, null: true}, {key: "n", line: 17, null: true},
		{key: "o", text: "200,2xx,off", line: 18, list: true},
		{key: "p", text: "http://h:80/x?y=z", line: 19}, {key: "q", text: "1", line: 20, sqsd: true},
		{key: "r", text: "a", line: 20, sqsd: true, list: true},
	}
	if diff := cmp.Diff(want, entries, cmp.AllowUnexported(entry{})); diff != "" || len(problems) > 0 {
		t.Errorf("%v\n%s", problems, diff)
	}
}

func TestParseDocumentLineEnds(t *testing.T) {
	t.Parallel()
	text := "a: \"one\n  two\"\nb: 'one\n  two'\nc: |\n  one\n  two\nd: one\n  two\ne:\n- f\n- g\nsqsd:\n  HttpPath: /x\n"
	want := []entry{
		{key: "a", text: "one two", line: 1}, {key: "b", text: "one two", line: 3}, {key: "c", text: "one\ntwo", line: 5},
		{key: "d", text: "one two", line: 8},
		{key: "e", text: "f,g", line: 10, list: true}, {key: "HttpPath", text: "/x", line: 14, sqsd: true},
	}
	for name, end := range map[string]string{"LF": "\n", "CR LF": "\r\n", "CR": "\r"} {
		entries, problems := parseDocument("f", []byte(strings.ReplaceAll(text, "\n", end)))
		if diff := cmp.Diff(want, entries, cmp.AllowUnexported(entry{})); diff != "" || len(problems) > 0 {
			t.Errorf("%s: %v\n%s", name, problems, diff)
		}
	}
	if _, problems := parseDocument("f",
		[]byte("a: |\r\n  x\r\n  y\r\nb: \"x\r\n  y\"\r\nc: {\r\n")); len(problems) != 1 ||
		!strings.HasPrefix(problems[0].String(), "f:6: ") {
		t.Errorf("got %v", problems)
	}
}

func TestParseDocumentKeepsValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"console_token: |hunter2":               "f:1: invalid YAML: invalid header option",
		"console_token: >\"hunter2\\\" hunter2": "f:1: invalid YAML: invalid header option",
		"console_token: \"hun\\ter2\\d\"":       "f:1: invalid YAML: found unknown escape character",
		"console_token: @hunter2":               "f:1: invalid YAML: '@' is a reserved character",
		"sqsd:\n\ta: \"hunter2 \" \"x":          "f:2: invalid YAML: found character tab that cannot start any token",
	} {
		if _, problems := parseDocument("f", []byte(text)); len(problems) != 1 || problems[0].String() != want {
			t.Errorf("%q: %v, want %s", text, problems, want)
		}
	}
}
