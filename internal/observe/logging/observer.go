package logging

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Record is one line, as an observer gets it.
type Record struct {
	At    time.Time
	Level slog.Level
	// Process is the process of the app that wrote the line to Stream; both are "" for a line of tendril.
	Process, Stream string
	// Message is the constant message of an event; "" for a delivery, and for what a process wrote. Attrs are those of
	// the event, with the names of their groups in their keys.
	Message string
	Attrs   []slog.Attr
	// Text is the line as a terminal shows it, without time and colours.
	Text string
}

// observer is told of each line; nil for none.
type observer struct{ atomic.Pointer[func(*Record)] }

func (o *observer) report(r *Record) {
	if listener := o.Load(); listener != nil {
		(*listener)(r)
	}
}

// Observe has f called with each line from now on: those that are printed, and events from slog.LevelInfo on that
// the level keeps from being printed. f must return soon, and may be called by several goroutines at once.
func (l *Logger) Observe(f func(*Record)) { l.observer.Store(&f) }

// observingHandler passes events on to the handler that prints them, and to an observer.
type observingHandler struct {
	slog.Handler
	text     textHandler // which collects attributes, and prints nothing
	observer *observer
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

// Handle prints and reports one event.
func (h *observingHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	if h.Handler.Enabled(ctx, r.Level) {
		err = h.Handler.Handle(ctx, r)
	}
	if h.observer.Load() != nil {
		attrs := h.text.attrsOf(r)
		var b bytes.Buffer
		h.text.appendEvent(&b, r.Message, attrs)
		h.observer.report(&Record{At: r.Time, Level: r.Level, Message: r.Message, Attrs: attrs, Text: b.String()})
	}
	return err
}
