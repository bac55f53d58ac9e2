package tendril_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// namedTest matches `package.TestName`, optionally with /subtest, and `script.txtar`, in backquotes.
var namedTest = regexp.MustCompile("`([a-z/]+)\\.(Test\\w+)(?:/[\\w/-]+)?`|`(\\w+\\.txtar)`")

// specificationRow matches a row with the cells ID, statement and tests.
var specificationRow = regexp.MustCompile(`^\| ([A-E]\d+) \| (.+) \| (.+) \|$`)

// changedSentence is an entry of docs/specification.yaml, which tools/mutation also uses.
type changedSentence struct{ Row, Change, In, Find, Put, Test string }

func changedSentences(t *testing.T) (all []changedSentence) {
	t.Helper()
	text, err := os.ReadFile("docs/specification.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSpecificationNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	tests := goTests(t)
	page, err := os.ReadFile("docs/specification.md")
	if err != nil {
		t.Fatal(err)
	}
	changes := map[string][]changedSentence{}
	for _, c := range changedSentences(t) {
		changes[c.Row] = append(changes[c.Row], c)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		m := specificationRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		id, shown := m[1], m[3]
		if seen[id] {
			t.Errorf("%s: the row is there twice", id)
		}
		seen[id] = true
		checkNamedTests(t, tests, id, shown)
		checkCaught(t, id, shown, changes[id])
		delete(changes, id)
	}
	for id := range changes {
		t.Errorf("docs/specification.yaml has a change for %s, which is no row", id)
	}
	if len(seen) < sentences {
		t.Errorf("%d rows, want the %d testable sentences", len(seen), sentences)
	}
}

// sentences is the number of testable statements in the documentation of Elastic Beanstalk and Workerless.
const sentences = 176

// checkCaught requires a row without changes to give the reason, and other rows to name the tests that detect the
// changes.
func checkCaught(t *testing.T, row, shown string, changes []changedSentence) {
	t.Helper()
	if len(changes) == 0 && !strings.HasPrefix(shown, "Not here: ") && !strings.HasPrefix(shown, "Not yet: ") {
		t.Errorf("%s: describe in docs/specification.yaml a change of the code that a test of the running daemon notices, "+
			"or begin the third cell with \"Not here: \" or \"Not yet: \" and the reason", row)
	}
	for _, c := range changes {
		if !strings.Contains(shown, "`"+c.Test+"`") {
			t.Errorf("%s: the row does not name %s, which notices that %s", row, c.Test, c.Change)
		}
	}
}

// Each function in docs/specification.yaml must contain the text to change exactly once.
func TestSpecificationChangesAreOfCodeThatExists(t *testing.T) {
	t.Parallel()
	bodies := functionBodies(t)
	for _, c := range changedSentences(t) {
		var words []string
		for _, word := range strings.Fields(c.Find) {
			words = append(words, regexp.QuoteMeta(word))
		}
		found, find := 0, regexp.MustCompile(strings.Join(words, `\s+`))
		for _, body := range bodies[c.In] {
			found += len(find.FindAllStringIndex(body, -1))
		}
		switch {
		case len(bodies[c.In]) == 0:
			t.Errorf("%s: there is no function %s: name in docs/specification.yaml the one that has its code now", c.Row, c.In)
		case found != 1:
			t.Errorf("%s: %s has %d times %q, want once: describe the change in docs/specification.yaml anew", c.Row, c.In,
				found, c.Find)
		}
	}
}

func functionBodies(t *testing.T) map[string][]string {
	t.Helper()
	bodies := map[string][]string{}
	for _, s := range sources(t) {
		matches, err := build.Default.MatchFile(filepath.Dir(s.path), filepath.Base(s.path))
		if err != nil {
			t.Fatal(err)
		}
		if s.test || !matches {
			continue
		}
		text, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		pkg := s.file.Name.Name
		if pkg == "main" {
			pkg = s.pkg
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				name := pkg + "." + receiverPrefix(f) + f.Name.Name
				bodies[name] = append(bodies[name], string(text[s.fset.Position(f.Body.Lbrace).Offset+1:s.fset.Position(f.Body.Rbrace).Offset]))
			}
		}
	}
	return bodies
}

func receiverPrefix(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	return fmt.Sprint(typ) + "."
}

// checkNamedTests checks that the last cell of a row names existing tests.
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

// goTests returns the names of all tests. The end of a folder's path suffices: "web.TestX", "console/web.TestX" and
// "internal/console/web.TestX" name the same test.
func goTests(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	enter := func(folder, name string) {
		for found := true; found; _, folder, found = strings.Cut(folder, "/") {
			tests[folder+"."+name] = true
		}
	}

	for _, s := range sources(t) {
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && s.test && f.Recv == nil {
				enter(s.pkg, f.Name.Name)
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
			enter(filepath.ToSlash(filepath.Dir(path)), m[1])
		}
	}
	return tests
}
