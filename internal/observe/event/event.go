package event

import (
	"context"
	"log/slog"
)

// Kind says what an event is about.
type Kind string

// The kinds of events.
const (
	Start      Kind = "start"
	Stop       Kind = "stop"
	Deploy     Kind = "deploy" // of a version of the app, of settings, or of the file of tasks
	Leadership Kind = "leadership"
	Pause      Kind = "pause" // and its end
	Breaker    Kind = "breaker"
	Scaling    Kind = "scaling"
	Health     Kind = "health"
	DeadLetter Kind = "dead-letter"
	Task       Kind = "task"
	Act        Kind = "act" // of a person or a program, over the console
)

// Kinds are all kinds of events.
func Kinds() []string {
	var names []string
	for _, k := range []Kind{Start, Stop, Deploy, Leadership, Pause, Breaker, Scaling, Health, DeadLetter, Task, Act} {
		names = append(names, string(k))
	}
	return names
}

// Event is one thing that happened. Its text is the same each time, and what varies is in its fields, by name.
type Event struct {
	Kind   Kind
	Text   string
	Fields map[string]string
}

// Listener receives events. Happened must return soon, and may be called by several goroutines at once.
type Listener interface{ Happened(Event) }

type kindKey struct{}

// Log reports an event to a log, whose listener receives it if the level is [slog.LevelInfo] or above.
func (k Kind) Log(log *slog.Logger, level slog.Level, text string, attrs ...any) {
	log.Log(context.WithValue(context.Background(), kindKey{}, k), level, text, attrs...) //nolint:sloglint // callers pass constants
}

// KindOf returns the kind of event in the context of a log line; "" if the line is no event.
func KindOf(ctx context.Context) Kind {
	k, _ := ctx.Value(kindKey{}).(Kind)
	return k
}
