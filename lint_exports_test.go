package tendril_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestExportedNamesAreUsed: a name is exported for a caller in another package. It counts as used when
// another package or its tests select it, when it is part of an exported signature, field or method of
// its own package, or when it is a value of an exported type, whose values belong together.
func TestExportedNamesAreUsed(t *testing.T) {
	selected, spelled, defined := map[string]bool{}, map[string]bool{}, map[string]token.Position{}
	for _, s := range sources(t) {
		selections(s, selected)
		if !s.test && s.inHouse() && s.file.Name.Name != "main" {
			for _, decl := range s.file.Decls {
				exportsOf(s, decl, defined, spelled)
			}
		}
	}
	for name, at := range defined {
		if !selected[name] && !spelled[name] {
			t.Errorf("%s: %s is exported, and no other package uses it: begin it with a small letter", at, name)
		}
	}
}

// selections enters what a file selects of other packages of this module.
func selections(s sourceFile, selected map[string]bool) {
	imports := map[string]string{}
	for _, i := range s.file.Imports {
		path, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "tendril/")
		if !ours {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = path
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && imports[x.Name] != "" {
				selected[imports[x.Name]+"."+sel.Sel.Name] = true
			}
		}
		return true
	})
}

// exportsOf enters the exported names that a declaration defines, and those that it spells where callers of
// the package see them.
func exportsOf(s sourceFile, decl ast.Decl, defined map[string]token.Position, spelled map[string]bool) {
	define := func(name *ast.Ident) {
		if name.IsExported() {
			defined[s.room+"."+name.Name] = s.fset.Position(name.Pos())
		}
	}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			define(d.Name)
		}
		if d.Name.IsExported() && exportedReceiver(d) {
			spell(s.room, d.Type, spelled)
		}
	case *ast.GenDecl:
		var typ ast.Expr // of the constants before, which iota continues
		for _, spec := range d.Specs {
			switch sp := spec.(type) {
			case *ast.TypeSpec:
				define(sp.Name)
				if sp.Name.IsExported() {
					spell(s.room, sp.Type, spelled)
				}
			case *ast.ValueSpec:
				if sp.Type != nil || len(sp.Values) > 0 {
					typ = sp.Type
				}
				for _, name := range sp.Names {
					if id, ok := typ.(*ast.Ident); !ok || !id.IsExported() {
						define(name)
					}
				}
				spell(s.room, sp.Type, spelled)
			}
		}
	}
}

// spell enters the exported names of a type as callers see it: hidden fields are left out.
func spell(room string, node ast.Expr, spelled map[string]bool) {
	if node == nil {
		return
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			hidden := len(n.Names) > 0 && !slices.ContainsFunc(n.Names, (*ast.Ident).IsExported)
			if _, isStruct := node.(*ast.StructType); hidden && isStruct {
				return false
			}
		case *ast.Ident:
			spelled[room+"."+n.Name] = true
		}
		return true
	})
}
