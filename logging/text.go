package logging

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"tendril/terminal"
)

// textHandler prints events for a person:
//
//	12:00:00 ! message  key=value key="two words" hint="what to type"
type textHandler struct {
	logger *Logger
	attrs  []slog.Attr // with the names of their groups in their keys
	group  string      // the prefix of further keys
}

// Enabled reports whether events of a level are printed.
func (h *textHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.logger.opts.Level
}

// WithAttrs returns a handler that adds attributes to each event.
func (h *textHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.attrs = slices.Clip(h.attrs)
	for _, a := range attrs {
		with.attrs = appendFlat(with.attrs, h.group, a)
	}
	return &with
}

// WithGroup returns a handler that puts a name in front of the keys that follow.
func (h *textHandler) WithGroup(name string) slog.Handler {
	with := *h
	with.group += name + "."
	return &with
}

// Handle prints one event. A further line of its message is indented, so that no text
// of others looks like a line of its own.
func (h *textHandler) Handle(_ context.Context, r slog.Record) error {
	attrs := slices.Clip(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		attrs = appendFlat(attrs, h.group, a)
		return true
	})
	l := h.logger
	l.print(func(b *bytes.Buffer) {
		l.paint(b, dim, r.Time.Format(time.TimeOnly))
		mark, color := " · ", dim
		if r.Level >= slog.LevelWarn {
			mark, color = " ! ", yellow
		}
		if r.Level >= slog.LevelError {
			color = red
		}
		l.paint(b, color, mark)
		b.WriteString(strings.ReplaceAll(terminal.Plain(r.Message, true), "\n", "\n  "))
		separator := "  "
		print := func(a slog.Attr) {
			b.WriteString(separator)
			if key, isMillis := strings.CutSuffix(a.Key, "_ms"); isMillis && a.Value.Kind() == slog.KindInt64 {
				a = slog.Duration(key, time.Duration(a.Value.Int64())*time.Millisecond)
			}
			l.paint(b, dim, terminal.Plain(a.Key, false)+"=")
			b.WriteString(quoted(a.Value))
			separator = " "
		}
		for _, a := range attrs {
			if a.Key != "component" && a.Key != "hint" {
				print(a)
			}
		}
		for _, a := range attrs {
			if a.Key == "hint" {
				print(a)
			}
		}
	})
	return nil
}

// appendFlat appends an attribute; of a group its members, with its name in front of
// their keys.
func appendFlat(attrs []slog.Attr, prefix string, a slog.Attr) []slog.Attr {
	value := a.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		return append(attrs, slog.Attr{Key: prefix + a.Key, Value: value})
	}
	if a.Key != "" {
		prefix += a.Key + "."
	}
	for _, member := range value.Group() {
		attrs = appendFlat(attrs, prefix, member)
	}
	return attrs
}

// quoted returns a value as printable text, in quotation marks unless it is one word.
func quoted(v slog.Value) string {
	var text string
	switch v.Kind() {
	case slog.KindDuration:
		return Short(v.Duration())
	case slog.KindTime:
		return v.Time().Format(time.RFC3339)
	default:
		text = terminal.Plain(v.String(), false)
	}
	if text != "" && !strings.ContainsAny(text, " \"=") {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"`
}
