package event

import (
	"context"
	"log/slog"
	"slices"
)

// Kind is the subject of an event.
type Kind string

// Kinds of events.
const (
	Start      Kind = "start"
	Stop       Kind = "stop"
	Deploy     Kind = "deploy"
	Leadership Kind = "leadership"
	Pause      Kind = "pause"
	Breaker    Kind = "breaker"
	Scaling    Kind = "scaling"
	Health     Kind = "health"
	DeadLetter Kind = "dead-letter"
	Task       Kind = "task"
	Act        Kind = "act"
	Read       Kind = "read" // message bodies, through the console
)

// Kinds returns all kinds of events.
func Kinds() []string {
	var names []string
	for _, k := range []Kind{Start, Stop, Deploy, Leadership, Pause, Breaker, Scaling, Health, DeadLetter, Task, Act, Read} {
		names = append(names, string(k))
	}
	return names
}

// DefaultKinds returns all kinds except Read, because looking at messages adds such events.
func DefaultKinds() []string {
	return slices.DeleteFunc(Kinds(), func(name string) bool { return Kind(name) == Read })
}

// Event is one event. Text is constant; variable parts are in Fields.
type Event struct {
	Kind   Kind
	Text   string
	Fields map[string]string
}

// Listener receives events. Happened must return quickly and be safe for concurrent use.
type Listener interface{ Happened(Event) }

type kindKey struct{}

// Log logs an event, which reaches the event listener if level is [slog.LevelInfo] or higher.
func (k Kind) Log(log *slog.Logger, level slog.Level, text string, attrs ...any) {
	log.Log(context.WithValue(context.Background(), kindKey{}, k), level, text, attrs...) //nolint:sloglint // callers pass constants
}

// KindOf returns the event kind in a log record's context, or "".
func KindOf(ctx context.Context) Kind {
	k, _ := ctx.Value(kindKey{}).(Kind)
	return k
}
