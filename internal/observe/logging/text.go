package logging

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/internal/host/terminal"
)

const (
	green  = "32"
	red    = "31"
	yellow = "33"
	cyan   = "36"
	dim    = "2"
)

type printer struct {
	out io.Writer
	mu  sync.Mutex
	buf bytes.Buffer
}

func (p *printer) print(write func(b *bytes.Buffer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf.Reset()
	write(&p.buf)
	p.buf.WriteByte('\n')
	p.out.Write(p.buf.Bytes())
}

type painter bool

func (p painter) paint(b *bytes.Buffer, code, text string) {
	if p {
		text = "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	b.WriteString(text)
}

// textHandler prints lines of this form:
//
//	12:00:00 ! message key=value key="two words"  hint: what to type
type textHandler struct {
	printer *printer
	color   painter
	level   slog.Level
	attrs   []slog.Attr
	group   string
}

func (h *textHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *textHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := h.withAttrs(attrs)
	return &with
}

func (h *textHandler) withAttrs(attrs []slog.Attr) textHandler {
	with := *h
	with.attrs = slices.Clip(h.attrs)
	for _, a := range attrs {
		with.attrs = appendFlat(with.attrs, h.group, a)
	}
	return with
}

func (h *textHandler) WithGroup(name string) slog.Handler {
	with := h.withGroup(name)
	return &with
}

func (h *textHandler) withGroup(name string) textHandler {
	with := *h
	with.group += name + "."
	return with
}

func (h *textHandler) Handle(_ context.Context, r slog.Record) error {
	message, attrs := actionText(r.Level, r.Message, h.attrsOf(r))
	mark, color := " · ", dim
	switch {
	case r.Level >= slog.LevelError:
		mark, color = " ! ", red
	case r.Level >= slog.LevelWarn:
		mark, color = " ! ", yellow
	}
	h.printer.print(func(b *bytes.Buffer) {
		h.color.paint(b, dim, r.Time.Format(time.TimeOnly))
		h.color.paint(b, color, mark)
		h.appendEvent(b, message, attrs)
	})
	return nil
}

var requestKeys = []string{"method", "path", "remote", "status", "request_id"}

func actionText(level slog.Level, message string, attrs []slog.Attr) (string, []slog.Attr) {
	i := slices.IndexFunc(attrs, func(a slog.Attr) bool { return a.Key == "act" })
	if i < 0 {
		return message, attrs
	}
	succeeded := level < slog.LevelWarn
	if succeeded {
		message = attrs[i].Value.String()
	}
	return message, slices.DeleteFunc(slices.Clone(attrs), func(a slog.Attr) bool {
		return succeeded && a.Key == "act" || slices.Contains(requestKeys, a.Key)
	})
}

func (h *textHandler) attrsOf(r slog.Record) []slog.Attr {
	attrs := slices.Clip(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		attrs = appendFlat(attrs, h.group, a)
		return true
	})
	return attrs
}

// Indenting further lines keeps untrusted text from imitating tendril's lines.
func (h *textHandler) appendEvent(b *bytes.Buffer, message string, attrs []slog.Attr) {
	b.WriteString(strings.ReplaceAll(terminal.Plain(message, true), "\n", "\n  "))
	separator := "  "
	write := func(a slog.Attr) {
		a = withDuration(a)
		b.WriteString(separator)
		h.color.paint(b, dim, terminal.Plain(a.Key, false)+"=")
		b.WriteString(valueText(a.Value))
		separator = " "
	}

	for _, a := range attrs {
		if a.Key != "component" && a.Key != "hint" {
			write(a)
		}
	}
	for _, a := range attrs {
		if a.Key == "hint" { // last and without quotes, so that a command can be copied
			h.color.paint(b, dim, "  hint: ")
			b.WriteString(terminal.Plain(a.Value.String(), false))
		}
	}
}

func withDuration(a slog.Attr) slog.Attr {
	key, isMillis := strings.CutSuffix(a.Key, "_ms")
	if !isMillis || a.Value.Kind() != slog.KindInt64 {
		return a
	}
	return slog.Duration(key, time.Duration(a.Value.Int64())*time.Millisecond)
}

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

func valueText(v slog.Value) string {
	switch v.Kind() {
	case slog.KindDuration:
		return roundedText(v.Duration())
	case slog.KindTime:
		return v.Time().Format(time.RFC3339)
	}
	text := terminal.Plain(v.String(), false)
	if text != "" && !strings.ContainsAny(text, " \"=") {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"`
}

func roundedText(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
