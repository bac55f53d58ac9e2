package terminal

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain escapes unprintable characters. If lines is true, it keeps newlines and tabs.
func Plain(text string, lines bool) string {
	if isPlain(text, lines) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		appendRune(&b, r, text[:size], lines)
		text = text[size:]
	}
	return b.String()
}

func isPlain(text string, lines bool) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && !(lines && (c == '\n' || c == '\t')) {
			return false
		}
	}
	return true
}

func appendRune(b *strings.Builder, r rune, raw string, lines bool) {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		fmt.Fprintf(b, `\x%02x`, raw[0])
	case lines && (r == '\n' || r == '\t'), unicode.IsGraphic(r), unicode.Is(unicode.Co, r),
		r == '\u200c' || r == '\u200d': // joiners in scripts and emoji are the only safe invisible characters
		b.WriteString(raw)
	default:
		quoted := fmt.Sprintf("%q", r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
}

// Writer escapes unprintable characters except newlines and tabs. Each Write must contain complete characters.
type Writer struct {
	To io.Writer
	// Colors keeps escape sequences that set a color or brightness and cannot hide text.
	Colors bool
}

// Write returns len(p), or the underlying writer's error.
func (w *Writer) Write(p []byte) (int, error) {
	text := p
	if !isPlain(string(p), true) {
		text = w.escape(p)
	}
	if _, err := w.To.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *Writer) escape(p []byte) []byte {
	var b strings.Builder
	for len(p) > 0 {
		if n := colorLength(p); w.Colors && n > 0 {
			b.Write(p[:n])
			p = p[n:]
			continue
		}
		r, size := utf8.DecodeRune(p)
		appendRune(&b, r, string(p[:size]), true)
		p = p[size:]
	}
	return []byte(b.String())
}

// Black and backgrounds can make text unreadable.
var safeColors = strings.Split(",0,1,2,22,31,32,33,34,35,36,39,91,92,93,94,95,96", ",")

func colorLength(p []byte) int {
	rest, ok := bytes.CutPrefix(p, []byte("\x1b["))
	end := bytes.IndexByte(rest[:min(len(rest), 16)], 'm')
	if !ok || end < 0 {
		return 0
	}
	for code := range bytes.SplitSeq(rest[:end], []byte{';'}) {
		if !slices.Contains(safeColors, string(code)) {
			return 0
		}
	}
	return len("\x1b[") + end + 1
}
