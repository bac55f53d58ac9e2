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

// Only the nightly run applies the changes, but a rename that breaks one must fail sooner.
func TestTendrilBuildsWithTheChangesOfTheSpecification(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	trial, _, err := newTrial(root, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := trial.buildTendril(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSentencesAreBrokenOneAtATime(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example\n\ngo 1.26\n",
		"cmd/tendril/main.go": "package main\n\nimport (\n\t\"os\"\n\t\"example/shop\"\n)\n\nfunc main() {\n" +
			"\tvar c shop.Cart\n\tc.Add(2)\n\tif c.Sum() != 2 || c.First() != 2 {\n\t\tos.Exit(1)\n\t}\n}\n",
		"shop/cart.go": "package shop\n\ntype Cart struct{ items []int }\n\nfunc (c *Cart) Add(n int) {\n" +
			"\tc.items = append(c.items, n)\n}\n\nfunc (c *Cart) Sum() (sum int) {\nall:\n\tfor _, n := range c.items {\n" +
			"\t\tif n < 0 {\n\t\t\tbreak all\n\t\t}\n\t\tsum += n\n\t}\n\treturn sum\n}\n\n" +
			"func (c *Cart) First() int { return c.items[0] }\n",
		"acceptance/cart_test.go": "package acceptance\n\nimport (\n\t\"os\"\n\t\"os/exec\"\n\t\"testing\"\n)\n\n" +
			"func TestCart(t *testing.T) {\n\tt.Run(\"A1\", func(t *testing.T) {\n" +
			"\t\tif err := exec.Command(os.Getenv(\"ACCEPTANCE_BINARY\")).Run(); err != nil {\n\t\t\tt.Error(err)\n\t\t}\n\t})\n}\n",
		"docs/specification.yaml": "- {row: A1, change: nothing is added, in: shop.Cart.Add, find: 'c.items = append(c.items, n)', put: 'n++', " +
			"test: acceptance.TestCart/A1}\n" +
			"- {row: A2, change: the sum is off, in: shop.Cart.Sum, find: 'sum += n', put: 'sum += n + 1', test: acceptance.TestCart/A1}\n" +
			"- {row: A3, change: nothing, in: shop.Cart.First, find: 'c.items[0]', put: 'c.items[len(c.items)-1]', test: acceptance.TestCart/A1}\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := trySpecification(t.Context(), root, []string{"A1", "A2"}, &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	out.Reset()
	if err := trySpecification(t.Context(), root, nil, &out); err == nil || !strings.Contains(out.String(), "2 of 3 changes noticed") {
		t.Errorf("%v\n%s", err, &out)
	}
	if err := os.WriteFile(filepath.Join(root, "shop/cart.go"),
		[]byte("package shop\n\ntype Cart struct{}\n\nfunc (c *Cart) Add(n int) {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := trySpecification(t.Context(), root, nil, &out)
	for _, want := range []string{`A1: shop.Cart.Add has no "c.items = append(c.items, n)"`, "A2: there is no function shop.Cart.Sum"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}
