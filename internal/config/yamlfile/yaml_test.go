package yamlfile

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

func plainForm() *Options {
	return &Options{PlainOnly: true, MaxBytes: 100, MaxTokens: 30, MaxDepth: 3, Form: "map of settings",
		HintTooMuch: "less", HintForm: "form", HintSyntax: "syntax"}
}

func TestPlainFilesRefuseWhatTheyDoNotNeed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: &x b":                         "1:4 anchors and aliases are not supported",
		"a: b\nc: *x":                     "2:4 anchors and aliases are not supported",
		"a: !x b":                         "1:4 tags are not supported",
		"<<: b":                           "1:1 merge keys are not supported",
		"? a\n: b":                        "1:1 keys that begin with \"? \" are not supported",
		"%YAML 1.2\n---\na: b":            "1:1 directives are not supported",
		"- a":                             "1:1 not a map of settings",
		"a: [[[[b]]]]":                    "1:6 maps and lists nested deeper than 3",
		"a: \"hunter2":                    "1:4 invalid YAML: could not find end character of double-quoted text",
		"a: [" + strings.Repeat("x,", 20): "1:32 more than 30 words and symbols",
		strings.Repeat("#", 101):          "0:0 the file is larger than 100 bytes",
		"a: \xff":                         "0:0 the file is not UTF-8 text",
		"a: b\n---\nc: d":                 "3:1 the file has a second document",
	} {
		_, fault := Read([]byte(text), plainForm())
		if fault == nil {
			t.Errorf("%q was read", text)
		} else if got := Place("", fault.Line, fault.Column); strings.TrimPrefix(got+" ", ":")+fault.Text != want &&
			!(fault.Line == 0 && "0:0 "+fault.Text == want) || fault.Hint == "" {
			t.Errorf("%q: %s %+v, want %s and a hint", text, got, fault, want)
		}
	}
}

func TestTextStaysAsItWasWritten(t *testing.T) {
	t.Parallel()
	root, fault := Read([]byte("\uFEFFa: 010\r\nb: |\r\n  x\r\nc:\r\n"), plainForm())
	if fault != nil {
		t.Fatal(fault)
	}
	if n := root.Get("a"); n.Text != "010" || n.Kind != Scalar || n.Line != 1 || n.Column != 4 {
		t.Errorf("a is %+v", n)
	}
	if n := root.Get("b"); n.Text != "x\n" || !n.Block {
		t.Errorf("b is %+v", n)
	}
	if n := root.Get("c"); n.Kind != Null || root.Get("d") != nil {
		t.Errorf("c is %+v", n)
	}
}

func TestProblemsAreOneLineEach(t *testing.T) {
	t.Parallel()
	got := Join([]Problem{{Where: Place("f", 3, 7), Text: "one", Hint: "do this"}, {Task: "x", Text: "two"}})
	if want := "f:3:7: one\n  do this\ntask x: two"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for text, want := range map[string]string{"a": "a", "a b": `"a b"`, "": `""`, "a\x1b": `"a\x1b"`,
		"t?key=secret x": "t?(hidden)", "0 0 ? * 1": `"0 0 ? * 1"`, strings.Repeat("x", 81): strings.Repeat("x", 80) + "..."} {
		if got := Shown(text); got != want {
			t.Errorf("Shown(%q) = %s, want %s", text, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"a: b", "a: &x [*x]", "? a\n: b", "%YAML 1.2\n---\n{a: !t b}", "<<: *a"} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, plain bool) {
		form := plainForm()
		form.PlainOnly = plain
		if root, fault := Read(data, form); fault != nil && (root != nil || fault.Text == "" || fault.Hint == "") {
			t.Errorf("%q: %v, %+v", data, root, fault)
		}
	})
}

func TestFromJSONKeepsEveryValue(t *testing.T) {
	t.Parallel()
	texts := []string{"", "a: b", "on", "no", "null", "~", "1e3", "0x10", "007", "2026-01-01", "# x", "a #b", "- x",
		"*x", "&x", "!x", "%x", "@x", "`x",
		"{}", "[1]", "two\nlines\n", "tab\there", "'", `"`, `\`, " leading", "trailing ", "key:", "?", "é",
		"<a&b>", "\u0007", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:x","maxReceiveCount":10}`, "(hidden)"}
	type document struct {
		Texts   []string          `json:"texts" yaml:"texts"`
		Map     map[string]string `json:"map" yaml:"map"`
		Nested  [][]document      `json:"nested" yaml:"nested"`
		N       int64             `json:"n" yaml:"n"`
		F       float64           `json:"f" yaml:"f"`
		B       bool              `json:"b" yaml:"b"`
		Nothing *int              `json:"nothing" yaml:"nothing"`
	}
	want := document{Texts: texts, Map: map[string]string{}, N: 1795466095123, F: 0.25, B: true}
	for _, text := range texts {
		want.Map["k"+text] = text
	}
	want.Nested = [][]document{{{Texts: []string{"x"}, Map: map[string]string{"a": "b"}}, {Texts: []string{}}}, {}}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := FromJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	var got document
	if err := yaml.Unmarshal(asYAML, &got); err != nil {
		t.Fatalf("%v\n%s", err, asYAML)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s\n%s", diff, asYAML)
	}
	if order := strings.NewReplacer(`"n"`, "n").Replace(string(asYAML)); strings.Index(order, "\nmap:") >
		strings.Index(order, "\nnested:") || strings.LastIndex(order, "\nn: ") > strings.LastIndex(order, "\nb: ") {
		t.Errorf("the keys are in another order:\n%s", asYAML)
	}
	for _, wrong := range []string{"", "{", `{"a"`, "[1", "{} {}", "x"} {
		if got, err := FromJSON([]byte(wrong)); err == nil {
			t.Errorf("%q is taken for %q", wrong, got)
		}
	}
}
