package tendril_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTest matches `package.TestName` and `script.txtar` in backquotes.
var namedTest = regexp.MustCompile("`([a-z/]+)\\.(Test\\w+)`|`(\\w+\\.txtar)`")

// TestSpecificationNamesTestsThatExist holds docs/specification.md to the
// code: each row names a test, and each test that is named exists.
func TestSpecificationNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	tests := goTests(t)
	page, err := os.ReadFile("docs/specification.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`^\| ([A-E]\d+) \| (.+) \| (.+) \|$`)
	seen := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		id, shown := m[1], m[3]
		if seen[id] {
			t.Errorf("%s: the row is there twice", id)
		}
		seen[id] = true
		checkNamedTests(t, tests, id, shown)
	}
	if len(seen) < 150 {
		t.Errorf("%d rows, want the 150 or more testable sentences", len(seen))
	}
}

// checkNamedTests holds the last cell of a table's row to the code: it names tests, and each of them exists.
func checkNamedTests(t *testing.T, tests map[string]bool, row, cell string) {
	t.Helper()
	names := namedTest.FindAllStringSubmatch(cell, -1)
	if len(names) == 0 {
		t.Errorf("%s: name a test that shows it: `package.TestName` or `name.txtar`", row)
	}
	for _, n := range names {
		if script := n[3]; script != "" {
			if _, err := os.Stat(filepath.Join("cmd/tendril/testdata/script", script)); err != nil {
				t.Errorf("%s: no such script: %s", row, script)
			}
		} else if name := n[1] + "." + n[2]; !tests[name] {
			t.Errorf("%s: no such test: %s", row, name)
		}
	}
}

// goTests are the tests of this module and of its tools, by package and name.
func goTests(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	for _, s := range sources(t) {
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && s.test && f.Recv == nil {
				tests[s.room+"."+f.Name.Name] = true
			}
		}
	}
	tools, err := filepath.Glob("tools/*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tools {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests[filepath.ToSlash(filepath.Dir(path))+"."+m[1]] = true
		}
	}
	return tests
}
