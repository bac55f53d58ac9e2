package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	gobuild "go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

const sentencesFile = "docs/specification.yaml"

type sentence struct {
	Row    string `yaml:"row"`
	Change string `yaml:"change"` // description of the changed behavior
	In     string `yaml:"in"`     // package.Function or package.Type.Method
	Find   string `yaml:"find"`   // must occur once in the body; all white space is equivalent
	Put    string `yaml:"put"`
	Test   string `yaml:"test"` // package.TestName, optionally with /subtest

	id int
}

func readSentences(root string) ([]*sentence, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(sentencesFile)))
	if err != nil {
		return nil, err
	}
	var all []*sentence
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", sentencesFile, err)
	}

	for i, s := range all {
		s.id = i + 1
		if s.Row == "" || s.Change == "" || s.In == "" || s.Find == "" || s.Test == "" {
			return nil, fmt.Errorf("%s: the entry of row %q lacks something", sentencesFile, s.Row)
		}
	}
	return all, nil
}

type goFile struct {
	path    string
	pkg     string
	name    string
	content []byte
	fset    *token.FileSet
	syntax  *ast.File
	edits   []edit
}

func module(root string) ([]*goFile, error) {
	var files []*goFile
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "tools"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		if matches, err := gobuild.Default.MatchFile(filepath.Dir(path), d.Name()); err != nil || !matches {
			return err
		}
		f := &goFile{path: path, fset: token.NewFileSet()}
		if f.content, err = os.ReadFile(path); err != nil {
			return err
		}
		if f.syntax, err = parser.ParseFile(f.fset, path, f.content, parser.SkipObjectResolution); err != nil {
			return err
		}
		f.name = f.syntax.Name.Name
		f.pkg = f.name
		if f.name == "main" {
			relative, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			f.pkg = filepath.ToSlash(relative)
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

func (s *sentence) apply(files []*goFile) error {
	var at *goFile
	var in *ast.FuncDecl
	var changed string

	known := false
	pattern := s.pattern()
	for _, f := range files {
		for _, decl := range f.syntax.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok || function.Body == nil || f.pkg+"."+functionName(function) != s.In {
				continue
			}
			known = true
			body := string(f.content[f.offset(function.Body.Lbrace)+1 : f.offset(function.Body.Rbrace)])
			places := pattern.FindAllStringIndex(body, -1)
			if len(places) == 0 {
				continue
			}
			if at != nil || len(places) > 1 {
				return fmt.Errorf("%s: %s has %q more than once: write more of it", s.Row, s.In, s.Find)
			}
			at, in, changed = f, function, body[:places[0][0]]+s.Put+body[places[0][1]:]
		}
	}

	switch {
	case !known:
		return fmt.Errorf("%s: there is no function %s: name the one that has its code now", s.Row, s.In)
	case at == nil:
		return fmt.Errorf("%s: %s has no %q: describe the change anew", s.Row, s.In, s.Find)
	}

	at.edits = append(at.edits, edit{offset: at.offset(in.Body.Lbrace) + 1, text: at.branch(s.id, in.Type.Results, changed)})
	return nil
}

func (s *sentence) pattern() *regexp.Regexp {
	var words []string
	for _, word := range strings.Fields(s.Find) {
		words = append(words, regexp.QuoteMeta(word))
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}

func (f *goFile) offset(pos token.Pos) int { return f.fset.Position(pos).Offset }

// The changed body is a nested function, because it may contain labels and named results.
func (f *goFile) branch(id int, results *ast.FieldList, body string) string {
	if results == nil {
		return fmt.Sprintf("\nif mutantOn(%d) {\nfunc() {%s\n}()\nreturn\n}\n", id, body)
	}
	list := string(f.content[f.offset(results.Pos()):f.offset(results.End())])
	return fmt.Sprintf("\nif mutantOn(%d) {\nreturn func() %s {%s\n}()\n}\n", id, list, body)
}

func overlaySentences(files []*goFile, count int, dir string) (string, error) {
	replace, switched := map[string]string{}, map[string]bool{}
	write := func(path string, content []byte) error {
		copied := filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		replace[path] = copied
		return os.WriteFile(copied, content, 0o600)
	}

	for _, f := range files {
		if len(f.edits) == 0 {
			continue
		}
		if err := write(f.path, (source{content: f.content, edits: f.edits}).rewritten()); err != nil {
			return "", err
		}
		if folder := filepath.Dir(f.path); !switched[folder] {
			switched[folder] = true
			text := strings.NewReplacer("PACKAGE", f.name, "COUNT", strconv.Itoa(count+1)).Replace(switchSource)
			if err := write(filepath.Join(folder, "mutant_switch.go"), []byte(text)); err != nil {
				return "", err
			}
		}
	}

	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

func prepare(root string, rows []string) (sentences []*sentence, files []*goFile, err error) {
	sentences, err = readSentences(root)
	if err != nil {
		return nil, nil, err
	}
	if files, err = module(root); err != nil {
		return nil, nil, err
	}
	if len(rows) > 0 {
		sentences = slices.DeleteFunc(sentences, func(s *sentence) bool { return !slices.Contains(rows, s.Row) })
	}
	if len(sentences) == 0 {
		return nil, nil, errors.New("no such row: use those of " + sentencesFile)
	}
	var problems []error
	for _, s := range sentences {
		problems = append(problems, s.apply(files))
	}
	return sentences, files, errors.Join(problems...)
}

type testName struct{ folder, name, sub string }

func (n testName) whole() testName { return testName{folder: n.folder, name: n.name} }

func (s *sentence) testName() testName {
	test, sub, _ := strings.Cut(s.Test[strings.LastIndexByte(s.Test, '.')+1:], "/")
	return testName{folder: s.Test[:strings.LastIndexByte(s.Test, '.')], name: test, sub: sub}
}

func (n testName) pattern() string {
	levels := []string{n.name}
	if n.sub != "" {
		levels = append(levels, strings.Split(n.sub, "/")...)
	}
	for i, level := range levels {
		levels[i] = "^" + regexp.QuoteMeta(level) + "$"
	}
	return strings.Join(levels, "/")
}

func complaint(output []byte) string {
	for line := range bytes.Lines(output) {
		text := strings.TrimSpace(string(line))
		if strings.Contains(text, "_test.go:") || strings.HasPrefix(text, "panic:") || strings.Contains(text, "FAIL:") {
			if !strings.HasPrefix(text, "---") {
				return text[:min(len(text), 160)]
			}
		}
	}
	return cmp.Or(strings.TrimSpace(string(output[:min(len(output), 160)])), "no output")
}
