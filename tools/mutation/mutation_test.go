package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sampleCode = `package sample

const constant = 2 * 3

var variable = 2 * 3

func Less(a, b int) bool { return a < b }

func AtLeast(a, b float64) bool { return a >= b }

func Join(a, b string) string { return a + b }

func Remainder(a int) int { return (a + constant) % 4 * -1 }

func Count(n int) (c int) {
	for i := 0; i < n; i++ {
		if c++; c > 9 {
			panic("endless")
		}
	}
	return c
}

func Name(a, b int) string {
	switch {
	case a == 1 && b != 2:
		return "one"
	}
	return "other"
}

func Unused(a int) bool { return a > 1 }

type T struct{ n int }

func (t *T) Add(d int) { t.n = t.n - d }
`

const sampleTest = `package sample

import "testing"

func TestAll(t *testing.T) {
	if !Less(1, 2) || Less(2, 1) || !AtLeast(1, 1) || AtLeast(1, 2) || Join("a", "b") != "ab" {
		t.Error("wrong")
	}
	if Remainder(1) != -3 || Count(3) != 3 || Name(1, 1) != "one" || Name(1, 2) != "other" {
		t.Error("wrong")
	}
	(&T{}).Add(1)
}

func TestSlow(t *testing.T) {
	if variable != 6 {
		t.Error("wrong")
	}
}
`

// TestMutantsOfASample tries every kind of mutant: those that the tests notice, those that they do not, and those that
// they do not execute. Strings and constants have none.
func TestMutantsOfASample(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example\n\ngo 1.26\n", "sample/code.go": sampleCode,
		"sample/code_test.go": sampleTest, "sample/other.go": "package sample\n\nfunc other(a int) int { return a + 1 }\n"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := core{pkg: "sample", files: []string{"code"}}
	p, err := load(root, c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := build(t.Context(), p, c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]outcome{}
	for _, m := range p.mutants {
		if got[fmt.Sprintf("%s: %s of %s", m.function, m.kind, m.source)], err = s.judge(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]outcome{
		": arithmetic of 2 * 3":                            killed,
		"Less: boundary of a < b":                          survived,
		"Less: negation of a < b":                          killed,
		"AtLeast: boundary of a >= b":                      killed,
		"AtLeast: negation of a >= b":                      killed,
		"Remainder: arithmetic of (a + constant) % 4 * -1": survived,
		"Remainder: arithmetic of (a + constant) % 4":      killed,
		"Remainder: arithmetic of a + constant":            killed,
		"Remainder: negative of -1":                        killed,
		"Count: boundary of i < n":                         killed,
		"Count: negation of i < n":                         killed,
		"Count: increment of i++":                          killed,
		"Count: increment of c++":                          killed,
		"Count: boundary of c > 9":                         survived,
		"Count: negation of c > 9":                         killed,
		"Name: negation of a == 1":                         killed,
		"Name: negation of b != 2":                         killed,
		"Unused: boundary of a > 1":                        unexecuted,
		"Unused: negation of a > 1":                        unexecuted,
		"T.Add: arithmetic of t.n - d":                     survived,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	var out strings.Builder
	outcomes := make([]outcome, len(p.mutants))
	for i, m := range p.mutants {
		outcomes[i] = got[fmt.Sprintf("%s: %s of %s", m.function, m.kind, m.source)]
	}
	if !write(&out, []result{c.result(p.mutants, outcomes)}) ||
		!strings.Contains(out.String(), "survived      sample/code.go:7 Less: boundary of a < b\n") ||
		!strings.Contains(out.String(), "sample: efficacy is 77.8 %, at least 95 is wanted") {
		t.Errorf("the report is\n%s", out.String())
	}
}

func TestCoresAndEquivalentsNameWhatExists(t *testing.T) {
	t.Parallel()
	for _, c := range cores {
		p, err := load("../..", c)
		if err != nil {
			t.Error(err)
			continue
		}
		places := map[string]bool{}
		for _, m := range p.mutants {
			places[m.file+fmt.Sprint(m.place)] = true
		}
		for _, e := range equivalents {
			if e.pkg == c.pkg && (!places[e.file+fmt.Sprint(e.place)] || e.reason == "") {
				t.Errorf("%s/%s has no %s of %s in %s, or no reason is given", e.pkg, e.file, e.kind, e.source, e.function)
			}
		}
	}
}
