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
	tests := map[string]bool{}
	for _, s := range sources(t) {
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && s.test && f.Recv == nil {
				tests[s.room+"."+f.Name.Name] = true
			}
		}
	}
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
		names := namedTest.FindAllStringSubmatch(shown, -1)
		if len(names) == 0 {
			t.Errorf("%s: name a test that shows it: `package.TestName` or `name.txtar`", id)
		}
		for _, n := range names {
			if script := n[3]; script != "" {
				if _, err := os.Stat(filepath.Join("cmd/tendril/testdata/script", script)); err != nil {
					t.Errorf("%s: no such script: %s", id, script)
				}
			} else if name := n[1] + "." + n[2]; !tests[name] {
				t.Errorf("%s: no such test: %s", id, name)
			}
		}
	}
	if len(seen) < 150 {
		t.Errorf("%d rows, want the 150 or more testable sentences", len(seen))
	}
}
