package tendril_test

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/scanner"
	"go/token"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits that keep a type, a line and an introduction readable in one look.
const (
	maxFields  = 20
	maxMethods = 30
	maxColumns = 120
	minDoc     = 10
	maxDoc     = 120
	maxCopied  = 12 // lines that two packages may share
)

// largeType is a type that is larger than the limits, how large it may be, and why.
type largeType struct {
	fields, methods int
	why             string
}

// largeTypes may only shrink: a type that got smaller is to be entered with its new size, one
// that keeps within the limits is to be taken out.
var largeTypes = map[string]largeType{
	"config.Option":   {24, 9, "one option: its names, its range, its help"},
	"config.Settings": {80, 5, "one option a field"},
}

func TestTypesFitOnAPage(t *testing.T) {
	sizes := map[string]largeType{}
	for _, s := range sources(t) {
		if s.test || !s.inHouse() {
			continue
		}
		for _, decl := range s.file.Decls {
			measureTypes(decl, s.room, sizes)
		}
	}
	for name, is := range sizes {
		may, listed := largeTypes[name]
		if !listed {
			may = largeType{maxFields, maxMethods, ""}
		}
		if is.fields > max(may.fields, maxFields) || is.methods > max(may.methods, maxMethods) {
			t.Errorf("%s has %d fields and %d methods, more than %d and %d: give a part of it, with its state, a type "+
				"of its own", name, is.fields, is.methods, max(may.fields, maxFields), max(may.methods, maxMethods))
		}
	}
	for name, may := range largeTypes {
		is := sizes[name]
		switch {
		case is.fields <= maxFields && is.methods <= maxMethods:
			t.Errorf("%s keeps within the limits (%d fields, %d methods): take it out of largeTypes", name,
				is.fields, is.methods)
		case is.fields < may.fields || is.methods < may.methods:
			t.Errorf("%s has %d fields and %d methods by now: enter that in largeTypes", name, is.fields, is.methods)
		}
	}
}

// measureTypes adds the fields and methods that a declaration defines to the sizes of their types.
func measureTypes(decl ast.Decl, pkg string, sizes map[string]largeType) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return
		}
		name := pkg + "." + receiverName(d.Recv.List[0].Type)
		size := sizes[name]
		size.methods++
		sizes[name] = size
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			typ, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if st, ok := typ.Type.(*ast.StructType); ok {
				name := pkg + "." + typ.Name.Name
				size := sizes[name]
				for _, f := range st.Fields.List {
					size.fields += max(len(f.Names), 1)
				}
				sizes[name] = size
			}
		}
	}
}

// receiverName is the name of a receiver's type, without pointer and type parameters.
func receiverName(typ ast.Expr) string {
	switch x := typ.(type) {
	case *ast.StarExpr:
		return receiverName(x.X)
	case *ast.IndexExpr:
		return receiverName(x.X)
	case *ast.IndexListExpr:
		return receiverName(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

func TestLinesFitTheColumns(t *testing.T) {
	for _, s := range sources(t) {
		data, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		raw := rawLines(data)
		for i, line := range strings.Split(string(data), "\n") {
			if utf8.RuneCountInString(line) > maxColumns && !raw[i+1] && !strings.HasPrefix(line, "//go:") {
				t.Errorf("%s:%d has %d columns, more than %d: break the line", s.path, i+1, len(line), maxColumns)
			}
		}
	}
}

// rawLines are the numbers of the lines on which a raw string, or a string without a space to
// break at, stands: they are data.
func rawLines(src []byte) map[int]bool {
	lines := map[int]bool{}
	file := token.NewFileSet().AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok != token.STRING || lit[0] != '`' && strings.ContainsRune(lit, ' ') {
			continue
		}
		if first := file.Line(pos); lit[0] == '`' || len(lit) > maxColumns/2 {
			for i := range strings.Count(lit, "\n") + 1 {
				lines[first+i] = true
			}
		}
	}
}

// longPages are the Markdown files with lines that are too wide, and how many.
var longPages = map[string]int{
	"docs/options.md": 16, // generated: one paragraph is one line
}

func TestPagesFitTheColumns(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "out" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".md") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		wide, fenced := 0, false
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			// What a program prints, and a row of a table, cannot be broken.
			isData := fenced || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "|")
			if !isData && utf8.RuneCountInString(line)-1 > maxColumns {
				wide++
			}
		}
		if may := longPages[path]; wide != may {
			t.Errorf("%s has %d lines wider than %d columns, expected %d: break them, or enter a smaller number",
				path, wide, maxColumns, may)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestIntroductionsAreShort(t *testing.T) {
	for _, r := range rooms {
		data, err := os.ReadFile(filepath.Join(r.name, "doc.go"))
		if err != nil {
			continue // TestEveryPackageHasItsRoom tells
		}
		if n := bytes.Count(data, []byte("\n")); n < minDoc || n > maxDoc {
			t.Errorf("%s/doc.go has %d lines: an introduction has %d to %d", r.name, n, minDoc, maxDoc)
		}
	}
}

// maxLines is the size from which a package says in its introduction why it is so large.
const maxLines = 4000

func TestLargePackagesSayWhy(t *testing.T) {
	lines := map[string]int{}
	for _, s := range sources(t) {
		if !s.test && s.inHouse() {
			lines[s.room] += s.fset.File(s.file.Pos()).LineCount()
		}
	}
	for room, n := range lines {
		data, err := os.ReadFile(filepath.Join(room, "doc.go"))
		if n > maxLines && (err != nil || !bytes.Contains(data, []byte("// # Its size\n"))) {
			t.Errorf("%s has %d lines, more than %d: say why below \"# Its size\" in doc.go", room, n, maxLines)
		}
	}
}

// knownCopies are pairs of files that still share such a run.
var knownCopies = []string{}

// block is a run of lines in a file.
type block struct {
	path string
	line int
}

func TestPackagesDoNotCopyEachOther(t *testing.T) {
	seen := map[uint64][]block{}
	for _, s := range sources(t) {
		if s.test || !s.inHouse() {
			continue
		}
		data, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		code, numbers := codeLines(string(data))
		for i := 0; i+maxCopied < len(code); i++ {
			h := fnv.New64a()
			for _, l := range code[i : i+maxCopied+1] {
				h.Write([]byte(l))
				h.Write([]byte{'\n'})
			}
			seen[h.Sum64()] = append(seen[h.Sum64()], block{s.path, numbers[i]})
		}
	}
	told := map[string]bool{}
	for _, places := range seen {
		slices.SortFunc(places, func(a, b block) int { return cmp.Or(cmp.Compare(a.path, b.path), a.line-b.line) })
		for _, other := range places[1:] {
			first := places[0]
			pair := first.path + " " + other.path
			if filepath.Dir(first.path) == filepath.Dir(other.path) || told[pair] {
				continue
			}
			told[pair] = true
			if !slices.Contains(knownCopies, pair) {
				t.Errorf("%s:%d and %s:%d share more than %d lines: write them once, in a package that both may import",
					first.path, first.line, other.path, other.line, maxCopied)
			}
		}
	}
	for _, pair := range knownCopies {
		if !told[pair] {
			t.Errorf("%s share no long run any more: take them out of knownCopies", pair)
		}
	}
}

// codeLines are the lines of a file that hold code, without indentation, and their numbers.
func codeLines(src string) (code []string, numbers []int) {
	body := strings.Index(src, "\n)\n") // after the imports
	for i, line := range strings.Split(src, "\n") {
		body -= len(line) + 1
		if line = strings.TrimSpace(line); body > 0 || len(line) < 2 || strings.HasPrefix(line, "//") {
			continue
		}
		code, numbers = append(code, line), append(numbers, i+1)
	}
	return code, numbers
}
