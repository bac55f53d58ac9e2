package filter

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const orKey = "$or"

type object struct {
	fields []field
	ors    [][]*object
}

func (o *object) match(at func(*field) bool) bool {
	for i := range o.fields {
		if !at(&o.fields[i]) {
			return false
		}
	}
	for _, or := range o.ors {
		if !slices.ContainsFunc(or, func(o *object) bool { return o.match(at) }) {
			return false
		}
	}
	return true
}

type field struct {
	name   string
	nested *object // nil if the field has tests
	tests  []test
	absent bool // also matches a missing value
}

func (f *field) matchesLeaf(l leaf) bool {
	return slices.ContainsFunc(f.tests, func(t test) bool { return t(&l) })
}

func (f *field) matchesAbsence() bool {
	if f.nested != nil {
		return f.nested.match((*field).matchesAbsence)
	}
	return f.absent
}

type test func(l *leaf) bool

type leaf struct {
	kind       jsontext.Kind
	text       string // unquoted string, or JSON text of another kind
	alsoString bool
}

func (l *leaf) isString() bool { return l.kind == kindString || l.alsoString }

// number keeps the digits of integers, because float64 cannot represent all of them.
type number struct {
	digits string
	value  float64
}

func parseNumber(text string) (number, bool) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return number{}, false
	}
	n := number{value: value}
	if whole := strings.TrimPrefix(text, "-"); strings.Trim(whole, "0123456789") == "" {
		n.digits = text[:len(text)-len(whole)] + strings.TrimLeft(whole, "0")
	}
	return n, true
}

func (n number) equals(m number) bool {
	if n.value == 0 || n.digits == "" || m.digits == "" {
		return n.value == m.value
	}
	return n.digits == m.digits
}

func (l *leaf) number() (number, bool) {
	if l.kind != kindNumber {
		return number{}, false
	}
	return parseNumber(l.text)
}

func isOr(n node) bool {
	isOther := func(n node) bool { return n.kind != kindObject }
	return n.kind == kindArray && len(n.array) > 0 && !slices.ContainsFunc(n.array, isOther)
}

func (p *parser) object(n node) (*object, *patternError) {
	if len(n.object) == 0 {
		return nil, p.fail(n.offset, "an empty object: name a field, such as {\"kind\": [\"order\"]}")
	}

	o := &object{}
	for _, m := range n.object {
		if m.name == orKey && isOr(m.value) {
			or, wrong := p.or(m.value)
			if wrong != nil {
				return nil, wrong
			}
			o.ors = append(o.ors, or)
			continue
		}

		f, wrong := p.field(m)
		if wrong != nil {
			return nil, wrong
		}
		o.fields = append(o.fields, f)
	}
	return o, nil
}

// or parses the alternatives of $or. It rejects operators as names, because they would be read as fields.
func (p *parser) or(n node) ([]*object, *patternError) {
	if len(n.array) < 2 {
		return nil, p.fail(n.offset, "$or has one alternative: use two or more")
	}

	var or []*object
	for _, branch := range n.array {
		for _, m := range branch.object {
			if slices.Contains(operators, m.name) {
				return nil, p.fail(m.offset, "%q in an alternative of $or is an operator, not a field", m.name)
			}
		}
		o, wrong := p.object(branch)
		if wrong != nil {
			return nil, wrong
		}
		or = append(or, o)
	}

	return or, nil
}

func (p *parser) field(m member) (f field, wrong *patternError) {
	f.name = m.name
	n := m.value
	if n.kind == kindObject {
		f.nested, wrong = p.object(n)
		return f, wrong
	}
	if n.kind != kindArray {
		return f, p.fail(n.offset, "the values of %q are a list: write [%s]", m.name, n.source)
	}
	if len(n.array) == 0 {
		return f, p.fail(n.offset, "%q has an empty list, which nothing matches", m.name)
	}
	for _, item := range n.array {
		if wrong := p.addItem(&f, item); wrong != nil {
			return f, wrong
		}
	}
	return f, nil
}

// operators lists the operators of EventBridge; Lambda does not support the last two for SQS. Read-only.
var operators = []string{"prefix", "suffix", "equals-ignore-case", "anything-but", "numeric", "exists", "wildcard",
	"cidr"}

func (p *parser) addItem(f *field, n node) *patternError {
	switch n.kind {
	case kindArray:
		return p.fail(n.offset, "nested list: use one list of values")
	case kindObject:
		return p.addOperator(f, n)
	}
	t, wrong := p.equal(n)
	if wrong != nil {
		return wrong
	}
	f.tests = append(f.tests, t)
	return nil
}

func (p *parser) equal(n node) (test, *patternError) {
	switch n.kind {
	case kindString:
		want := n.text
		return func(l *leaf) bool { return l.isString() && l.text == want }, nil
	case kindNumber:
		want, ok := parseNumber(n.text)
		if !ok {
			return nil, p.fail(n.offset, "the number is too large")
		}
		return compareNumber(want.equals), nil
	}
	return func(l *leaf) bool { return l.kind == n.kind }, nil // null, true or false
}

func (p *parser) addOperator(f *field, n node) *patternError {
	if len(n.object) != 1 {
		return p.fail(n.offset, "an object in a list must have one operator: %s", strings.Join(operators[:6], ", "))
	}

	m := n.object[0]
	var t test
	var wrong *patternError
	switch m.name {
	case "exists":
		return p.addExists(f, m.value)
	case "numeric":
		t, wrong = p.numeric(m.value)
	case "anything-but":
		t, wrong = p.anythingBut(m.value)
	default:
		t, wrong = p.textOperator(m)
	}
	if wrong != nil {
		return wrong
	}
	f.tests = append(f.tests, t)
	return nil
}

func (p *parser) addExists(f *field, n node) *patternError {
	switch n.kind {
	case jsontext.KindTrue:
		f.tests = append(f.tests, func(*leaf) bool { return true })
	case jsontext.KindFalse:
		f.absent = true
	default:
		return p.fail(n.offset, "exists must be true or false")
	}
	return nil
}

func (p *parser) textOperator(m member) (test, *patternError) {
	compare := map[string]func(text, want string) bool{"prefix": strings.HasPrefix, "suffix": strings.HasSuffix,
		"equals-ignore-case": strings.EqualFold}[m.name]
	if compare == nil {
		return nil, p.fail(m.offset, "unknown operator %q: use %s", m.name, strings.Join(operators[:6], ", "))
	}
	want := m.value.text
	if m.value.kind != kindString || want == "" && m.name != "equals-ignore-case" {
		return nil, p.fail(m.value.offset, "%s takes a non-empty string", m.name)
	}
	return func(l *leaf) bool { return l.isString() && compare(l.text, want) }, nil
}

func (p *parser) anythingBut(n node) (test, *patternError) {
	items := []node{n}
	switch n.kind {
	case kindArray:
		items = n.array
		if len(items) == 0 {
			return nil, p.fail(n.offset, "anything-but has an empty list")
		}
	case kindObject:
		if len(n.object) != 1 {
			return nil, p.fail(n.offset, "anything-but takes one of prefix, suffix and equals-ignore-case")
		}
		not, wrong := p.textOperator(n.object[0])
		return func(l *leaf) bool { return !not(l) }, wrong
	}

	var nots []test
	for _, item := range items {
		if item.kind != items[0].kind || item.kind != kindString && item.kind != kindNumber {
			return nil, p.fail(item.offset, "anything-but takes either strings or numbers")
		}
		not, wrong := p.equal(item)
		if wrong != nil {
			return nil, wrong
		}
		nots = append(nots, not)
	}

	return func(l *leaf) bool { return !slices.ContainsFunc(nots, func(t test) bool { return t(l) }) }, nil
}

func (p *parser) numeric(n node) (test, *patternError) {
	const form = `numeric takes a list such as ["=", 5], ["<", 10] or [">", 0, "<=", 5]`
	if n.kind != kindArray || len(n.array) != 2 && len(n.array) != 4 {
		return nil, p.fail(n.offset, form)
	}

	var signs []string
	var bounds []number
	for pair := range slices.Chunk(n.array, 2) {
		bound, ok := parseNumber(pair[1].text)
		isSign := pair[0].kind == kindString && !strings.Contains(pair[0].text, " ") // "> <" is not two signs
		if !isSign || pair[1].kind != kindNumber || !ok {
			return nil, p.fail(pair[0].offset, form)
		}
		signs = append(signs, pair[0].text)
		bounds = append(bounds, bound)
	}

	switch strings.Join(signs, " ") {
	case "=":
		return compareNumber(bounds[0].equals), nil
	case "<", "<=", ">", ">=":
		return compareNumber(within(signs[0], bounds[0].value)), nil
	case "> <", "> <=", ">= <", ">= <=":
		if bounds[0].value >= bounds[1].value {
			return nil, p.fail(n.offset, "the lower bound of numeric must be less than its upper bound")
		}
		above, below := within(signs[0], bounds[0].value), within(signs[1], bounds[1].value)
		return compareNumber(func(got number) bool { return above(got) && below(got) }), nil
	}
	return nil, p.fail(n.offset, form)
}

func compareNumber(is func(number) bool) test {
	return func(l *leaf) bool {
		got, ok := l.number()
		return ok && is(got)
	}
}

func within(sign string, bound float64) func(number) bool {
	switch sign {
	case "<":
		return func(n number) bool { return n.value < bound }
	case "<=":
		return func(n number) bool { return n.value <= bound }
	case ">":
		return func(n number) bool { return n.value > bound }
	}
	return func(n number) bool { return n.value >= bound }
}
