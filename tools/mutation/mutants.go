package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

type mutant struct {
	id   int
	file string
	line int
	place
}

// place identifies a mutant independently of its line.
type place struct {
	function string // "" in a package variable
	kind     string // boundary, negation, arithmetic, increment or negative
	source   string
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d %s: %s of %s", m.file, m.line, m.function, m.kind, m.source)
}

type source struct {
	path    string
	content []byte
	edits   []edit
}

type program struct {
	pkg     *packages.Package
	dir     string
	mutants []mutant // by id - 1
	sources []source
}

func load(root string, c core) (*program, error) {
	loaded, err := packages.Load(&packages.Config{Dir: root,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax |
			packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile},
		"./"+c.pkg)
	if err != nil {
		return nil, err
	}
	if len(loaded) != 1 || len(loaded[0].Errors) > 0 {
		return nil, fmt.Errorf("reading package %s: %v", c.pkg, loaded[0].Errors)
	}

	p := &program{pkg: loaded[0], dir: filepath.Join(root, c.pkg)}
	for i, file := range p.pkg.Syntax {
		path := p.pkg.CompiledGoFiles[i]
		if !c.counts(filepath.Base(path)) {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		finder := &finder{program: p, source: source{path: path, content: content}, start: file.FileStart}
		for _, decl := range file.Decls {
			finder.declaration(decl)
		}
		p.sources = append(p.sources, finder.source)
	}

	if missing := c.missing(p.pkg.CompiledGoFiles); len(missing) > 0 {
		return nil, fmt.Errorf("package %s has no %s: correct cores.go", c.pkg, strings.Join(missing, ", "))
	}
	return p, nil
}

type finder struct {
	program  *program
	source   source
	start    token.Pos
	function string
}

func (f *finder) declaration(decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		f.function = functionName(decl)
		if decl.Body != nil {
			ast.Inspect(decl.Body, f.visit)
		}
	case *ast.GenDecl:
		f.function = ""
		if decl.Tok == token.VAR {
			ast.Inspect(decl, f.visit)
		}
	}
}

func functionName(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	receiver := strings.TrimPrefix(types.ExprString(decl.Recv.List[0].Type), "*")
	name, _, _ := strings.Cut(receiver, "[")
	return name + "." + decl.Name.Name
}

func (f *finder) visit(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.GenDecl:
		return node.Tok == token.VAR
	case *ast.ArrayType:
		return false
	case *ast.BinaryExpr:
		f.binary(node)
	case *ast.UnaryExpr:
		if node.Op == token.SUB {
			f.negative(node)
		}
	case *ast.IncDecStmt:
		f.increment(node)
	}
	return true
}

func (f *finder) add(node ast.Node, at token.Pos, kind string) int {
	text := string(f.source.content[node.Pos()-f.start : node.End()-f.start])
	id := len(f.program.mutants) + 1
	f.program.mutants = append(f.program.mutants, mutant{id: id, file: filepath.Base(f.source.path),
		line:  f.program.pkg.Fset.Position(at).Line,
		place: place{function: f.function, kind: kind, source: strings.Join(strings.Fields(text), " ")}})
	return id
}
