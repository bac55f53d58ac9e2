package aws

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads JSON that it knows the shape of, in place: the strings it
// returns are parts of its buffer, with escapes undone where they stood. It
// stops at the first error and keeps it; every method is then without effect.
//
// It is not a validator. It checks what it needs in order never to read past the
// end, never to recurse without bound, and never to take one field for
// another; inside a string it takes bytes as they come.
type scanner struct {
	buf   []byte
	pos   int
	depth int
	err   error
}

// maxDepth bounds the nesting of what is skipped. SQS needs 5.
const maxDepth = 64

func (s *scanner) fail(want string) {
	switch {
	case s.err != nil:
	case s.pos >= len(s.buf):
		s.err = errors.New("the answer ends too early")
	default:
		s.err = fmt.Errorf("at byte %d of the answer: expected %s", s.pos, want)
	}
}

// next skips white space and returns the byte that follows, 0 at the end or
// after an error.
func (s *scanner) peek() byte {
	if s.err != nil {
		return 0
	}
	for ; s.pos < len(s.buf); s.pos++ {
		switch c := s.buf[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take skips white space and consumes c if it is next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || c == 0 {
		return false
	}
	s.pos++
	return true
}

// literal consumes word if it is next.
func (s *scanner) literal(word string) bool {
	s.peek()
	if s.err != nil || !bytes.HasPrefix(s.buf[s.pos:], []byte(word)) {
		return false
	}
	s.pos += len(word)
	return true
}

// object calls member with each name, placed before the value, which member
// must consume. A null is an empty object.
func (s *scanner) object(member func(name []byte)) {
	if s.literal("null") || !s.enter('{', "an object") {
		return
	}
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			s.fail("a comma or the end of the object")
		}
		if s.peek() != '"' {
			s.fail("a member name")
		}
		name := s.readText()
		if !s.take(':') {
			s.fail("a colon")
		}
		if s.err != nil {
			return
		}
		member(name)
	}
	s.depth--
}

// array calls element before each value, which element must consume. A null
// is an empty array.
func (s *scanner) array(element func()) {
	if s.literal("null") || !s.enter('[', "an array") {
		return
	}
	for first := true; !s.take(']'); first = false {
		if !first && !s.take(',') {
			s.fail("a comma or the end of the array")
		}
		if s.peek() == 0 || s.peek() == ']' {
			s.fail("a value")
		}
		if s.err != nil {
			return
		}
		element()
	}
	s.depth--
}

func (s *scanner) enter(open byte, want string) bool {
	if !s.take(open) {
		s.fail(want)
		return false
	}
	if s.depth++; s.depth > maxDepth {
		s.fail("less nesting")
		return false
	}
	return true
}

// text consumes a string and returns it without its escapes; nil for null.
func (s *scanner) readText() []byte {
	if s.literal("null") {
		return nil
	}
	if !s.take('"') {
		s.fail("a string")
		return nil
	}
	rest := s.buf[s.pos:]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		s.pos = len(s.buf)
		s.fail("the end of a string")
		return nil
	}
	escape := bytes.IndexByte(rest[:end], '\\')
	if escape < 0 {
		s.pos += end + 1
		return rest[:end:end]
	}
	return s.unescape(escape)
}

// unescape is text for a string with its first escape at offset from here. It
// writes the plain text over the escaped one, which is never shorter.
func (s *scanner) unescape(offset int) []byte {
	start := s.pos
	s.pos += offset
	w := s.pos
	for s.pos < len(s.buf) {
		run := bytes.IndexAny(s.buf[s.pos:], `"\`)
		if run < 0 {
			break
		}
		w += copy(s.buf[w:], s.buf[s.pos:s.pos+run])
		s.pos += run + 1
		if s.buf[s.pos-1] == '"' {
			return s.buf[start:w:w]
		}
		r := s.escape()
		if s.err != nil {
			return nil
		}
		w += utf8.EncodeRune(s.buf[w:w+utf8.RuneLen(r)], r)
	}
	s.pos = len(s.buf)
	s.fail("the end of a string")
	return nil
}

// escape consumes what follows a backslash and returns its character.
func (s *scanner) escape() rune {
	if s.pos >= len(s.buf) {
		s.fail("an escape")
		return utf8.RuneError
	}
	const escaped, plain = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	c := s.buf[s.pos]
	i := strings.IndexByte(escaped, c)
	if i < 0 && c != 'u' {
		s.fail(`one of "\/bfnrtu after a backslash`)
		return utf8.RuneError
	}
	s.pos++
	if c == 'u' {
		return s.unicode()
	}
	return rune(plain[i])
}

// unicode consumes four hexadecimal digits, and a second escape where the two
// are a surrogate pair. Half a pair is the replacement character.
func (s *scanner) unicode() rune {
	r := s.hex4(s.pos)
	if r < 0 {
		s.fail("four hexadecimal digits")
		return utf8.RuneError
	}
	s.pos += 4
	if !utf16.IsSurrogate(r) {
		return r
	}
	if s.pos+6 <= len(s.buf) && s.buf[s.pos] == '\\' && s.buf[s.pos+1] == 'u' {
		if both := utf16.DecodeRune(r, s.hex4(s.pos+2)); both != utf8.RuneError {
			s.pos += 6
			return both
		}
	}
	return utf8.RuneError
}

// hex4 returns the number of the four hexadecimal digits at pos, -1 when they
// are not that.
func (s *scanner) hex4(pos int) rune {
	if pos+4 > len(s.buf) {
		return -1
	}
	n, err := strconv.ParseUint(string(s.buf[pos:pos+4]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// flag consumes true or false, which some servers write as a string; null is
// false.
func (s *scanner) flag() bool {
	switch {
	case s.literal("true"), s.literal(`"true"`), s.literal(`"True"`):
		return true
	case s.literal("false"), s.literal("null"), s.literal(`"false"`), s.literal(`"False"`):
	default:
		s.fail("true or false")
	}
	return false
}

// skip consumes any value.
func (s *scanner) skip() {
	switch c := s.peek(); {
	case c == '{':
		s.object(func([]byte) { s.skip() })
	case c == '[':
		s.array(func() { s.skip() })
	case c == '"':
		s.readText()
	case c == '-' || c >= '0' && c <= '9':
		for s.pos < len(s.buf) && bytes.IndexByte([]byte("+-.eE0123456789"), s.buf[s.pos]) >= 0 {
			s.pos++
		}
	case !s.literal("true") && !s.literal("false") && !s.literal("null"):
		s.fail("a value")
	}
}

// end checks that nothing follows but white space, and returns the first
// error of all.
func (s *scanner) finish() error {
	if s.peek(); s.err == nil && s.pos < len(s.buf) {
		s.fail("the end of the answer")
	}
	return s.err
}
