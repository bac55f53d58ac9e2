package environment

import (
	"context"
	"log/slog"
	"time"

	"tendril/logging"
)

// report is the logger, as long as messages are written as sentences.
type report struct{ *logging.Logger }

// note logs a sentence.
func (r *report) note(level slog.Level, component, sentence string, attrs ...slog.Attr) {
	r.LogAttrs(context.Background(), level, sentence,
		append([]slog.Attr{slog.String("component", component)}, attrs...)...)
}

func short(d time.Duration) string { return logging.Short(d) }
