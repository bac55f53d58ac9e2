package logging

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"tendril/internal/observe/event"
)

// Record is one line, as an observer gets it.
type Record struct {
	At    time.Time
	Level slog.Level
	// Process is the process of the app that wrote the line to Stream; both are "" for a line of tendril.
	Process, Stream string
	// Text is the line as a terminal shows it, without time and colours.
	Text string
}

// observer receives lines and events.
type observer struct {
	lines  func(*Record)
	events event.Listener
}

// Observe has lines called with each line from now on: those that are printed, and others from slog.LevelInfo on that
// the level keeps from being printed. Those that are events go to the listener too. lines must return soon, and may be
// called by several goroutines at once.
func (l *Logger) Observe(lines func(*Record), events event.Listener) {
	l.observer.Store(&observer{lines, events})
}

// observingHandler passes events on to the handler that prints them, and to an observer.
type observingHandler struct {
	slog.Handler
	text     textHandler // which collects attributes, and prints nothing
	observer *atomic.Pointer[observer]
}

// Enabled reports whether events of a level are printed or observed.
func (h *observingHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, level) || level >= slog.LevelInfo && h.observer.Load() != nil
}

// WithAttrs returns a handler that adds attributes to each event.
func (h *observingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &observingHandler{h.Handler.WithAttrs(attrs), h.text.withAttrs(attrs), h.observer}
}

// WithGroup returns a handler that puts a name in front of the keys that follow.
func (h *observingHandler) WithGroup(name string) slog.Handler {
	return &observingHandler{h.Handler.WithGroup(name), h.text.withGroup(name), h.observer}
}

// Handle prints and reports one line.
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

// fieldsOf are the attributes of a line as the fields of an event.
func fieldsOf(attrs []slog.Attr) map[string]string {
	fields := map[string]string{}
	for _, a := range attrs {
		name, isMillis := strings.CutSuffix(a.Key, "_ms")
		switch {
		case a.Key == "component" || a.Key == "hint":
		case isMillis && a.Value.Kind() == slog.KindInt64:
			fields[name] = (time.Duration(a.Value.Int64()) * time.Millisecond).String()
		case a.Value.String() != "":
			fields[a.Key] = a.Value.String()
		}
	}
	return fields
}
