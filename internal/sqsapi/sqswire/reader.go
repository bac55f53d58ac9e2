package sqswire

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Problem is the kind of an [Error].
type Problem int

// The problems of a JSON text.
const (
	NotJSON       Problem = iota // invalid from Error.At
	HalfPair                     // an unpaired surrogate
	TooDeep                      // nested deeper than [Limits] allows
	TooManyValues                // more values than [Limits] allows
	WrongKind                    // the value at Error.Path must be Error.Want
)

// Error is the reason a text cannot be read. It contains names and numbers of the text, but no other strings.
type Error struct {
	Problem Problem
	// At is the offset in bytes.
	At int
	// Path names the value, such as Entries.0.Id; "" for the whole text.
	Path string
	// Want and Got are kinds of values, such as "string" and "number 1.5". Got is "" if the kind is right but the
	// value is invalid. For HalfPair, Got is the surrogate in hexadecimal.
	Want, Got string
}

// Error describes the problem and its offset.
func (e *Error) Error() string {
	at := " at byte " + strconv.Itoa(e.At)
	switch e.Problem {
	case TooDeep:
		return "it nests too deeply" + at
	case TooManyValues:
		return "it has too many values" + at
	case HalfPair:
		return "half of a surrogate pair" + at
	case WrongKind:
		return "a value must be " + e.Want + at
	}
	return "it is not valid JSON" + at
}

// Limits restricts a [Reader]'s input. Zero means no limit.
type Limits struct {
	Depth int
	// Values limits the number of commas and opening brackets. Without a limit, decoding a short text can require a
	// hundred times its size in memory.
	Values int
	// Lenient accepts control characters and invalid UTF-8 in strings, and unpaired surrogates as U+FFFD.
	Lenient bool
}

// Reader reads a JSON text. Its methods consume the next value, which must be of their kind or null. After an error,
// they return zero values, and [Reader.Finish] returns the error.
type Reader struct {
	limits Limits
	text   string
	at     int
	depth  int
	values int
	shared bool // the last string shares the text's memory
	err    *Error
}

// NewReader returns a reader of text.
func NewReader(text string, limits Limits) Reader { return Reader{limits: limits, text: text} }

// Finish returns the first error, or nil. Only white space may follow the value.
func (r *Reader) Finish() *Error {
	if !r.AtEnd() {
		r.fail(NotJSON)
	}
	return r.err
}

// Failed reports whether there was an error.
func (r *Reader) Failed() bool { return r.err != nil }

// AtEnd reports whether only white space follows.
func (r *Reader) AtEnd() bool {
	r.skipSpace()
	return r.at == len(r.text)
}

func (r *Reader) fail(problem Problem) *Error {
	failed := &Error{Problem: problem, At: r.at}
	if r.err == nil {
		r.err = failed
	}
	r.at = len(r.text)
	return failed
}

// Mismatch fails because the next value is not of the wanted kind.
func (r *Reader) Mismatch(want string) {
	got := kinds[r.Peek()]
	start := r.at
	if got == "" {
		const mostShown = 32
		got = "number"
		if text := r.number(); len(text) < mostShown {
			got += " " + text
		}
	} else {
		r.Skip()
	}

	failed := r.fail(WrongKind)
	failed.At = start
	failed.Want = want
	failed.Got = got
}

// kinds maps the first byte of a value to its kind, except for numbers. Read-only.
var kinds = map[byte]string{'"': "string", '[': "array", '{': "object", 't': "bool", 'f': "bool", 'n': "null"}

// Reject fails because the last value is invalid, such as malformed base64.
func (r *Reader) Reject(want string) { r.fail(WrongKind).Want = want }

func (e *Error) within(name string) {
	if e.Path != "" {
		name += "." + e.Path
	}
	e.Path = name
}

func (r *Reader) skipSpace() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\n', '\r', '\t':
			r.at++
		default:
			return
		}
	}
}

// Peek skips white space and returns the next byte without consuming it; 0 at the end.
func (r *Reader) Peek() byte {
	r.skipSpace()
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *Reader) take(c byte) bool {
	if r.Peek() != c {
		return false
	}
	r.at++
	return true
}

func (r *Reader) takeWord(w string) bool {
	r.skipSpace()
	if !strings.HasPrefix(r.text[r.at:], w) {
		return false
	}
	r.at += len(w)
	return true
}

// Null consumes null if it is next.
func (r *Reader) Null() bool { return r.Peek() == 'n' && r.takeWord("null") }

func (r *Reader) open(bracket byte, kind string) bool {
	if r.Null() {
		return false
	}

	if !r.take(bracket) {
		r.Mismatch(kind)
		return false
	}
	r.depth++
	if r.limits.Depth > 0 && r.depth > r.limits.Depth {
		r.fail(TooDeep)
	}
	r.count()
	return r.err == nil
}

func (r *Reader) count() {
	r.values++
	if r.limits.Values > 0 && r.values > r.limits.Values {
		r.fail(TooManyValues)
	}
}

// more reports whether another element follows the first n. It consumes the comma, or the closing bracket.
func (r *Reader) more(n int, bracket byte) bool {
	if r.err != nil {
		return false
	}
	if r.take(bracket) {
		r.depth--
		return false
	}
	if n == 0 {
		return true
	}

	if !r.take(',') {
		r.fail(NotJSON)
		return false
	}
	r.count()
	return r.err == nil
}

// Object calls member with each member's name. member must consume the value.
func (r *Reader) Object(member func(name string)) {
	if !r.open('{', "object") {
		return
	}
	for n := 0; r.more(n, '}'); n++ {
		if r.Peek() != '"' {
			r.fail(NotJSON)
			return
		}
		name := r.Text()
		if r.err == nil && !r.take(':') {
			r.fail(NotJSON)
		}
		if r.err != nil {
			return
		}

		member(name)
		if r.err != nil {
			r.err.within(name)
		}
	}
}

// List calls element for each element. element must consume the value.
func (r *Reader) List(element func()) {
	if !r.open('[', "list or base64 string") {
		return
	}
	for n := 0; r.more(n, ']'); n++ {
		element()
		if r.err != nil {
			r.err.within(strconv.Itoa(n))
		}
	}
}

// Text returns a string, which shares the text's memory unless it has escapes.
func (r *Reader) Text() string {
	if r.Null() {
		return ""
	}
	if r.Peek() != '"' {
		r.Mismatch("string")
		return ""
	}

	start := r.at
	length := closingQuote(r.text[start+1:])
	if length < 0 {
		r.at = len(r.text)
		r.fail(NotJSON)
		return ""
	}
	r.at = start + length + 2

	s := r.text[start+1 : start+1+length]
	if !r.limits.Lenient && !isPrintable(s) && !isText(s) {
		r.at = start
		r.fail(NotJSON)
		return ""
	}
	r.shared = strings.IndexByte(s, '\\') < 0
	if r.shared {
		return s
	}
	return r.unescape(s, start+1)
}

// closingQuote returns the offset of the first unescaped quotation mark, or -1. A quotation mark after an odd number of
// backslashes is escaped.
func closingQuote(text string) int {
	for at := 0; ; at++ {
		n := strings.IndexByte(text[at:], '"')
		if n < 0 {
			return -1
		}
		at += n
		if before := text[:at]; (len(before)-len(strings.TrimRight(before, `\`)))%2 == 0 {
			return at
		}
	}
}

// OwnText is like Text, but never shares memory.
func (r *Reader) OwnText() string {
	s := r.Text()
	if r.shared {
		return strings.Clone(s)
	}
	return s
}

func (r *Reader) unescape(s string, offset int) string {
	out := make([]byte, 0, len(s))
	rest := s
	for {
		n := strings.IndexByte(rest, '\\')
		if n < 0 {
			return string(append(out, rest...))
		}
		out = append(out, rest[:n]...)
		rest = rest[n:]

		const escaped, plain = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
		if i := strings.IndexByte(escaped, rest[1]); i >= 0 { // a string never ends with an unescaped backslash
			out = append(out, plain[i])
			rest = rest[2:]
			continue
		}
		c, size := r.codePoint(rest)
		if c < 0 {
			r.at = offset + len(s) - len(rest)
			if utf16.IsSurrogate(codeUnit(rest)) {
				r.fail(HalfPair).Got = rest[2:size]
			} else {
				r.fail(NotJSON)
			}
			return ""
		}
		out = utf8.AppendRune(out, c)
		rest = rest[size:]
	}
}

// codePoint decodes \uXXXX, or a surrogate pair of two, at the start of s, and returns the size. Invalid input becomes
// -1; with Lenient, an unpaired surrogate becomes U+FFFD.
func (r *Reader) codePoint(s string) (c rune, size int) {
	const unitSize = 6
	c = codeUnit(s)
	if !utf16.IsSurrogate(c) {
		return c, unitSize
	}

	both := utf16.DecodeRune(c, codeUnit(s[unitSize:]))
	switch {
	case both != utf8.RuneError:
		return both, 2 * unitSize
	case r.limits.Lenient:
		return utf8.RuneError, unitSize
	}
	return -1, unitSize
}

// codeUnit decodes the \uXXXX at the start of s, or returns -1.
func codeUnit(s string) rune {
	if len(s) < 6 || s[:2] != `\u` {
		return -1
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

func isPrintable(s string) bool {
	const high, blanks = 0x8080808080808080, 0x2020202020202020
	for ; len(s) >= 8; s = s[8:] {
		if word := binary.LittleEndian.Uint64([]byte(s[:8])); (word|(word-blanks))&high != 0 {
			return false
		}
	}
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c >= utf8.RuneSelf })
}

func isText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' })
}

// Integer returns an integer that fits into the given number of bits.
func (r *Reader) Integer(bits int) int64 {
	if r.Null() {
		return 0
	}

	c := r.Peek()
	start := r.at
	if c == '-' || c >= '0' && c <= '9' {
		n, err := strconv.ParseInt(r.number(), 10, bits)
		if err == nil || r.err != nil {
			return n
		}
		r.at = start
	}
	r.Mismatch("integer")
	return 0
}

func (r *Reader) number() string {
	start := r.at
	r.takeAny("-")
	if !r.takeAny("0") {
		r.takeDigits()
	}
	if r.takeAny(".") {
		r.takeDigits()
	}
	if r.takeAny("eE") {
		r.takeAny("+-")
		r.takeDigits()
	}
	return r.text[start:r.at]
}

func (r *Reader) takeAny(set string) bool {
	found := r.at < len(r.text) && strings.IndexByte(set, r.text[r.at]) >= 0
	if found {
		r.at++
	}
	return found
}

func (r *Reader) takeDigits() {
	const digits = "0123456789"
	if !r.takeAny(digits) {
		r.fail(NotJSON)
	}
	for r.takeAny(digits) {
	}
}

// Bool returns a boolean, false for null.
func (r *Reader) Bool() bool {
	if r.takeWord("true") {
		return true
	}
	if !r.takeWord("false") && !r.Null() {
		r.Mismatch("bool")
	}
	return false
}

// Skip consumes a value of any kind.
func (r *Reader) Skip() {
	switch r.Peek() {
	case '{':
		r.Object(func(string) { r.Skip() })
	case '[':
		r.List(r.Skip)
	case '"':
		r.Text()
	case 't', 'f', 'n':
		if !r.takeWord("true") && !r.takeWord("false") && !r.Null() {
			r.fail(NotJSON)
		}
	default:
		r.number()
	}
}
