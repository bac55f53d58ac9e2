package sqsapi

import (
	"bytes"
	"encoding/base64"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads the plain JSON that SDKs write, several times faster than the
// standard decoder. It knows no errors: whatever is not plain (a parameter
// that is unknown, twice there, null or of another type, more entries than
// are allowed, anything malformed) makes it give up, and the standard decoder
// judges. So it must never accept what that one would read otherwise.
type scanner struct {
	data   []byte // valid UTF-8
	at     int
	gaveUp bool
}

// quick is a request with a decoder on a scanner. It returns false, and
// leaves the request alone, when it gave up.
type quick interface{ scan(s *scanner) bool }

// finished reports whether the scanner read all there is without giving up.
func (s *scanner) finished() bool {
	s.space()
	return !s.gaveUp && s.at == len(s.data)
}

func (s *scanner) giveUp() { s.gaveUp, s.at = true, len(s.data) }

func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// take skips white space and then c, if it is there.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

// need is take for what has to be there.
func (s *scanner) need(c byte) {
	if !s.take(c) {
		s.giveUp()
	}
}

// once gives up when a parameter, a bit of its own in seen, is there again.
func (s *scanner) once(seen *uint, bit uint) {
	if *seen&bit != 0 {
		s.giveUp()
	}
	*seen |= bit
}

// object yields each key of an object; the caller reads the value. The key is
// valid until then.
func (s *scanner) object(yield func(key []byte) bool) {
	s.need('{')
	if s.gaveUp || s.take('}') {
		return
	}
	for {
		s.need('"')
		length := bytes.IndexByte(s.data[s.at:], '"')
		if length < 0 {
			s.giveUp()
			return
		}
		key := s.data[s.at : s.at+length]
		if !plain(key) {
			s.giveUp()
			return
		}
		s.at += length + 1
		s.need(':')
		if s.gaveUp || !yield(key) || s.gaveUp || s.take('}') {
			return
		}
		s.need(',')
	}
}

// array yields once for each element, which the caller reads, and gives up
// beyond most.
func (s *scanner) array(most int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		s.need('[')
		if s.gaveUp || s.take(']') {
			return
		}
		for i := 0; ; i++ {
			if i == most {
				s.giveUp()
			}
			if s.gaveUp || !yield(i) || s.gaveUp || s.take(']') {
				return
			}
			s.need(',')
		}
	}
}

// plain reports whether a string needs no unescaping and has no character
// that JSON forbids in it.
func plain(s []byte) bool {
	for _, c := range s {
		if c < ' ' || c == '\\' {
			return false
		}
	}
	return true
}

// text reads a string.
func (s *scanner) text() string {
	s.need('"')
	length := bytes.IndexByte(s.data[s.at:], '"')
	if length < 0 {
		s.giveUp()
		return ""
	}
	if raw := s.data[s.at : s.at+length]; plain(raw) {
		s.at += length + 1
		return string(raw)
	}
	return string(s.escaped(make([]byte, 0, length+64)))
}

// escaped appends the rest of a string, up to its closing quote.
func (s *scanner) escaped(dst []byte) []byte {
	for s.at < len(s.data) {
		start := s.at
		for s.at < len(s.data) && s.data[s.at] >= ' ' && s.data[s.at] != '"' && s.data[s.at] != '\\' {
			s.at++
		}
		dst = append(dst, s.data[start:s.at]...)
		switch {
		case s.at < len(s.data) && s.data[s.at] == '"':
			s.at++
			return dst
		case s.at == len(s.data) || s.data[s.at] != '\\':
			s.giveUp()
			return dst
		}
		dst = s.escape(dst)
	}
	s.giveUp()
	return dst
}

// escape appends what the escape at hand stands for.
func (s *scanner) escape(dst []byte) []byte {
	rest := s.data[s.at:]
	if len(rest) < 2 {
		s.giveUp()
		return dst
	}
	s.at += 2
	switch c := rest[1]; c {
	case '"', '\\', '/':
		return append(dst, c)
	case 'n':
		return append(dst, '\n')
	case 'r':
		return append(dst, '\r')
	case 't':
		return append(dst, '\t')
	case 'b':
		return append(dst, '\b')
	case 'f':
		return append(dst, '\f')
	}
	unit, ok := utf16Unit(rest)
	if !ok {
		s.giveUp()
		return dst
	}
	s.at += 4
	r := rune(unit)
	if utf16.IsSurrogate(r) {
		low, ok := utf16Unit(rest[6:])
		if r = utf16.DecodeRune(r, rune(low)); !ok || r == utf8.RuneError {
			s.giveUp()
			return dst
		}
		s.at += 6
	}
	return utf8.AppendRune(dst, r)
}

// integer reads a number without fraction and exponent.
func (s *scanner) integer() *int {
	minus := s.take('-')
	start, n := s.at, 0
	for s.at < len(s.data) && s.data[s.at] >= '0' && s.data[s.at] <= '9' {
		n = n*10 + int(s.data[s.at]-'0')
		s.at++
	}
	digits := s.at - start
	leadingZero := digits > 1 && s.data[start] == '0'
	if digits == 0 || digits > 9 || leadingZero || s.at < len(s.data) && isNumberPart(s.data[s.at]) {
		s.giveUp()
		return nil
	}
	if minus {
		n = -n
	}
	return &n
}

func isNumberPart(c byte) bool { return c == '.' || c == 'e' || c == 'E' }

// binary reads a base64 string.
func (s *scanner) binary() []byte {
	raw, err := base64.StdEncoding.DecodeString(s.text())
	if err != nil {
		s.giveUp()
	}
	return raw
}

// texts reads a list of strings.
func (s *scanner) texts() []string {
	list := []string{}
	for range s.array(maxValues) {
		list = append(list, s.text())
	}
	return list
}
