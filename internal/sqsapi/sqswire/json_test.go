package sqswire

import (
	"encoding/json"
	"testing"
)

func TestAppendString(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"", `""`},
		{"plain", `"plain"`},
		{"quote \" and \\", `"quote \" and \\"`},
		{"\n\r\t\x00\x1f", `"\n\r\t\u0000\u001f"`},
		{"a<b>&c/\x7f", "\"a<b>&c/\x7f\""},
		{"Zürich 😀 \u2028", "\"Zürich 😀 \u2028\""},
		{"bad\xffend\xc3", "\"bad\ufffdend\ufffd\""},
	}
	for _, test := range tests {
		if got := string(AppendString(nil, test.in)); got != test.want {
			t.Errorf("AppendString(%q) = %s, want %s", test.in, got, test.want)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	for _, seed := range []string{"", "plain", "\"\\/", "\x00\x1f\x7f", "é😀\u2028\u2029\ufffd",
		"\xff\xc3\x28\xed\xa0\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		standard, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var got, want string
		ours := AppendString([]byte("x"), s)[1:]
		if err := json.Unmarshal(ours, &got); err != nil {
			t.Fatalf("AppendString(%q) = %s: %v", s, ours, err)
		}
		if err := json.Unmarshal(standard, &want); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("AppendString(%q) = %s, which decodes to %q, want %q", s, ours, got, want)
		}
	})
}
