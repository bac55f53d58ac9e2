package runtimeapi

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// written returns the lines that the pieces become.
func written(maxLine int, pieces ...string) []string {
	var lines []string
	w := &lineWriter{instance: 3, stream: "stderr", max: maxLine, sink: func(instance int, stream string, line []byte) {
		if instance != 3 || stream != "stderr" {
			line = []byte("wrong place")
		}
		lines = append(lines, string(line))
	}}
	for _, piece := range pieces {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			lines = append(lines, "short write")
		}
	}
	w.Close()
	return lines
}

func TestLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ pieces, want []string }{
		"nothing":       {nil, nil},
		"whole":         {[]string{"one\ntwo\n"}, []string{"one", "two"}},
		"in pieces":     {[]string{"o", "ne\nt", "wo"}, []string{"one", "two"}},
		"empty lines":   {[]string{"\n\na\n"}, []string{"", "", "a"}},
		"Windows":       {[]string{"a\r\nb\r", "\n"}, []string{"a", "b"}},
		"long":          {[]string{"123456789", "0AB\nnext\n"}, []string{"1234567890 ... (2 bytes cut)", "next"}},
		"just so long":  {[]string{"1234567890\n"}, []string{"1234567890"}},
		"long, no end":  {[]string{strings.Repeat("x", 30)}, []string{"xxxxxxxxxx ... (20 bytes cut)"}},
		"colours":       {[]string{"\x1b[2J\ax\n"}, []string{`\x1b[2J\x07x`}},
		"tab":           {[]string{"a\tb\n"}, []string{"a\tb"}},
		"not UTF-8":     {[]string{"\xff\x80\n"}, []string{`\xff\x80`}},
		"right to left": {[]string{"a\u202eb\n"}, []string{`a\u{202e}b`}},
		"separators":    {[]string{"\u2028\u0085\n"}, []string{`\u{2028}\u{85}`}},
		"other scripts": {[]string{"日本\n"}, []string{"日本"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := written(10, c.pieces...); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func FuzzLines(f *testing.F) {
	f.Add("a\x1b[31m\nb\r\n", 1)
	f.Add("\xff\u202e\n\n", 2)
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = min(max(at, 0), len(text))
		got := written(8, text[:at], text[at:])
		if !slices.Equal(got, written(8, text)) {
			t.Errorf("the pieces of %q matter", text)
		}
		for _, line := range got {
			if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) {
				t.Errorf("%q shows as %q", text, line)
			}
		}
	})
}
