package runtimeapi

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// lineWriter splits what a process writes into lines of at most max bytes and
// passes them on. It never fails, so that a process never meets a broken pipe
// because of us.
type lineWriter struct {
	instance int
	stream   string
	max      int
	sink     func(instance int, stream string, line []byte)
	// part is the line so far; cut counts what of it went beyond max.
	part []byte
	cut  int
	// shown is the room for what goes to the sink.
	shown []byte
}

// Write takes the next bytes. It is called by one goroutine.
func (w *lineWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		room := min(w.max-len(w.part), len(line))
		w.part = append(w.part, line[:room]...)
		w.cut += len(line) - room
		if ended {
			w.flush()
		}
		rest = after
	}
	return len(p), nil
}

// Close passes on what is left without an end of line.
func (w *lineWriter) Close() error {
	if len(w.part) > 0 || w.cut > 0 {
		w.flush()
	}
	return nil
}

func (w *lineWriter) flush() {
	w.shown = appendVisible(w.shown[:0], bytes.TrimSuffix(w.part, []byte{'\r'}))
	if w.cut > 0 {
		w.shown = fmt.Appendf(w.shown, " ... (%d bytes cut)", w.cut)
	}
	w.sink(w.instance, w.stream, w.shown)
	w.part, w.cut = w.part[:0], 0
}

// appendVisible appends line with everything written out that shows nothing by
// itself but would change how the rest is shown, or what the terminal does.
func appendVisible(dst, line []byte) []byte {
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		switch {
		case r == utf8.RuneError && size == 1, r != '\t' && r < 0x80 && unicode.IsControl(r):
			dst = fmt.Appendf(dst, `\x%02x`, line[0])
		case r != '\t' && (unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r == '\ufeff'):
			dst = fmt.Appendf(dst, `\u{%x}`, r)
		default:
			dst = append(dst, line[:size]...)
		}
		line = line[size:]
	}
	return dst
}
