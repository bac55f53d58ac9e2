package logging

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"tendril/internal/observe/event"
)

// Record is a log line as passed to an observer.
type Record struct {
	At              time.Time
	Level           slog.Level
	Process, Stream string
	// Text is the line as on a terminal, without time and colors.
	Text string
}

type observer struct {
	lines  func(*Record)
	events event.Listener
}

// Observe passes later lines to lines, and events to the listener. It omits lines below slog.LevelInfo that are not
// printed. lines must return quickly and be safe for concurrent use.
func (l *Logger) Observe(lines func(*Record), events event.Listener) {
	l.observer.Store(&observer{lines, events})
}

type observingHandler struct {
	slog.Handler
	text     textHandler
	observer *atomic.Pointer[observer]
}

func (h *observingHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, level) || level >= slog.LevelInfo && h.observer.Load() != nil
}

func (h *observingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &observingHandler{h.Handler.WithAttrs(attrs), h.text.withAttrs(attrs), h.observer}
}

func (h *observingHandler) WithGroup(name string) slog.Handler {
	return &observingHandler{h.Handler.WithGroup(name), h.text.withGroup(name), h.observer}
}

func (h *observingHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	if h.Handler.Enabled(ctx, r.Level) {
		err = h.Handler.Handle(ctx, r)
	}
	o := h.observer.Load()
	if o == nil {
		return err
	}

	attrs := h.text.attrsOf(r)
	var b bytes.Buffer
	h.text.appendEvent(&b, r.Message, attrs)
	o.lines(&Record{At: r.Time, Level: r.Level, Text: b.String()})
	if kind := event.KindOf(ctx); kind != "" && r.Level >= slog.LevelInfo {
		o.events.Happened(event.Event{Kind: kind, Text: r.Message, Fields: fieldsOf(attrs)})
	}
	return err
}

func fieldsOf(attrs []slog.Attr) map[string]string {
	fields := map[string]string{}
	for _, a := range attrs {
		a = withDuration(a)
		if text := a.Value.String(); text != "" && a.Key != "component" && a.Key != "hint" {
			fields[a.Key] = text
		}
	}
	return fields
}
