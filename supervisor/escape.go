package supervisor

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendEscaped appends line to dst, with everything that could move a
// terminal's cursor, change its state or reorder text made visible: control
// characters, bytes that are not UTF-8, line separators and the marks that
// change the writing direction. Tabs stay.
func appendEscaped(dst, line []byte) []byte {
	for len(line) > 0 {
		if c := line[0]; c < utf8.RuneSelf {
			dst = appendASCII(dst, c)
			line = line[1:]
			continue
		}
		r, size := utf8.DecodeRune(line)
		switch {
		case r == utf8.RuneError && size == 1:
			dst = appendHex(dst, line[0])
		case isHidden(r):
			dst = append(dst, `\u{`...)
			dst = strconv.AppendInt(dst, int64(r), 16)
			dst = append(dst, '}')
		default:
			dst = append(dst, line[:size]...)
		}
		line = line[size:]
	}
	return dst
}

func appendASCII(dst []byte, c byte) []byte {
	switch {
	case c == '\r':
		return append(dst, `\r`...)
	case c == '\n':
		return append(dst, `\n`...)
	case c == '\t', c >= ' ' && c != 0x7f:
		return append(dst, c)
	default:
		return appendHex(dst, c)
	}
}

func appendHex(dst []byte, c byte) []byte {
	return append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
}

// isHidden reports whether r shows nothing by itself but changes how the rest
// is shown.
func isHidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == '\ufeff'
}
