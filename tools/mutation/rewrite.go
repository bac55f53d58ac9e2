package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// switchSource contains the functions that replace operators in the rewritten code.
//
//go:embed switch.go.txt
var switchSource string

type edit struct {
	offset, length int
	text           string
	closes         bool // follows an expression, so edits of inner expressions come first
}

var ordered = map[token.Token]string{token.LSS: "mutantLess", token.LEQ: "mutantLessEqual",
	token.GTR: "mutantGreater", token.GEQ: "mutantGreaterEqual"}

var arithmetic = map[token.Token]string{token.ADD: "mutantAdd", token.SUB: "mutantSubtract",
	token.MUL: "mutantMultiply", token.QUO: "mutantDivide", token.REM: "mutantRemainder"}

func (f *finder) binary(e *ast.BinaryExpr) {
	result := f.program.pkg.TypesInfo.Types[e]
	switch {
	case (e.Op == token.EQL || e.Op == token.NEQ) && result.Value == nil:
		f.before(e.Pos(), "((")
		f.after(e.End(), fmt.Sprintf(") != mutantOn(%d))", f.add(e, e.OpPos, "negation")))
	case ordered[e.Op] != "" && result.Value == nil:
		boundary, negation := f.add(e, e.OpPos, "boundary"), f.add(e, e.OpPos, "negation")
		f.call(e, fmt.Sprintf("%s(%d, %d, ", ordered[e.Op], boundary, negation))
	case arithmetic[e.Op] != "" && isNumber(result.Type):
		f.call(e, fmt.Sprintf("%s%s(%d, ", arithmetic[e.Op], f.explicit(result, e.X, e.Y), f.add(e, e.OpPos, "arithmetic")))
	}
}

func (f *finder) negative(e *ast.UnaryExpr) {
	result := f.program.pkg.TypesInfo.Types[e]
	if !isNumber(result.Type) {
		return
	}
	text := fmt.Sprintf("mutantNegative%s(%d, ", f.explicit(result, e.X), f.add(e, e.OpPos, "negative"))
	f.edit(edit{offset: f.offset(e.OpPos), length: 1, text: text})
	f.after(e.End(), ")")
}

// The statement may be in a loop's header, so increment inserts a function call.
func (f *finder) increment(s *ast.IncDecStmt) {
	other := "--"
	if s.Tok == token.DEC {
		other = "++"
	}
	id := f.add(s, s.TokPos, "increment")
	operand := string(f.source.content[f.offset(s.X.Pos()):f.offset(s.X.End())])
	f.before(s.Pos(), fmt.Sprintf("func() { if mutantOn(%d) { %s%s } else { ", id, operand, other))
	f.after(s.End(), " } }()")
}

func (f *finder) call(e *ast.BinaryExpr, function string) {
	f.before(e.Pos(), function)
	f.edit(edit{offset: f.offset(e.OpPos), length: len(e.Op.String()), text: ","})
	f.after(e.End(), ")")
}

// explicit returns a call's type argument if all operands are untyped constants, because it cannot be inferred.
func (f *finder) explicit(result types.TypeAndValue, operands ...ast.Expr) string {
	for _, operand := range operands {
		if f.program.pkg.TypesInfo.Types[operand].Value == nil {
			return ""
		}
	}

	qualifier := func(p *types.Package) string {
		if p == f.program.pkg.Types {
			return ""
		}
		return p.Name()
	}
	return "[" + types.TypeString(types.Default(result.Type), qualifier) + "]"
}

func isNumber(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsInteger|types.IsFloat) != 0
}

func (f *finder) offset(pos token.Pos) int { return int(pos - f.start) }

func (f *finder) edit(e edit) { f.source.edits = append(f.source.edits, e) }

func (f *finder) before(pos token.Pos, text string) { f.edit(edit{offset: f.offset(pos), text: text}) }

func (f *finder) after(pos token.Pos, text string) {
	f.edit(edit{offset: f.offset(pos), text: text, closes: true})
}

// rewritten relies on the order of s.edits: at the same offset, the edits of outer expressions come first.
func (s source) rewritten() []byte {
	type numbered struct {
		edit
		number int
	}
	var edits []numbered
	for i, e := range s.edits {
		edits = append(edits, numbered{e, i})
	}
	slices.SortFunc(edits, func(a, b numbered) int {
		switch {
		case a.offset != b.offset:
			return a.offset - b.offset
		case a.closes && b.closes:
			return b.number - a.number
		case a.closes:
			return -1
		case b.closes:
			return 1
		}
		return a.number - b.number
	})

	var out bytes.Buffer
	last := 0
	for _, e := range edits {
		out.Write(s.content[last:e.offset])
		out.WriteString(e.text)
		last = e.offset + e.length
	}

	out.Write(s.content[last:])
	return out.Bytes()
}

func (p *program) overlay(dir string) (string, error) {
	replace := map[string]string{}
	write := func(path string, content []byte) error {
		copied := filepath.Join(dir, filepath.Base(path))
		replace[path] = copied
		return os.WriteFile(copied, content, 0o600)
	}

	for _, s := range p.sources {
		if err := write(s.path, s.rewritten()); err != nil {
			return "", err
		}
	}

	text := strings.NewReplacer("PACKAGE", p.pkg.Name, "COUNT", strconv.Itoa(len(p.mutants)+1)).Replace(switchSource)
	if err := write(filepath.Join(p.dir, "mutant_switch.go"), []byte(text)); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
