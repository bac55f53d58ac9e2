package delivery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"tendril/periodic"
	"tendril/queue"
)

// Registry reports whether a scheduled run of this id was made for this path, or returns
// [ErrUndecided].
type Registry func(ctx context.Context, id, path string) (bool, error)

// ErrUndecided is the error while it is not known whether there is a registry.
var ErrUndecided = errors.New("the registry of periodic tasks is not known yet")

// undecidedPause is how soon a message is tried again that only the registry can judge.
const undecidedPause = time.Second

// recognizeRuns parses each message as a scheduled run.
func recognizeRuns(next Deliverer, known Registry, fifo bool) Deliverer {
	return func(ctx context.Context, batch []*Message) {
		for _, m := range batch {
			if run := queue.ParseRun(m.Message); run != nil {
				parsed := *m.Message
				parsed.Run, m.Message = run, &parsed
			}
		}
		if known != nil {
			batch = prepare(batch, fifo, func(m *Message) bool { return judge(ctx, m, known) })
		}
		if len(batch) > 0 {
			next(ctx, batch)
		}
	}
}

// judge asks whether a message is the run that it claims to be. One that is not known
// becomes an ordinary message, also a copy of a run that goes to another path. It
// returns false when there is no answer.
func judge(ctx context.Context, m *Message, known Registry) bool {
	if m.Attribute(queue.AttributePath) == "" {
		return true
	}
	if id := periodic.IDOf(m.Run); id != "" {
		ok, err := known(ctx, id, m.Run.Path)
		switch {
		case errors.Is(err, ErrUndecided):
			m.Result = queue.Result{Outcome: queue.Postponed, Reason: err.Error(), RetryAfter: undecidedPause}
			return false
		case err != nil:
			m.Result = queue.Result{Reason: "the registry of periodic tasks did not answer", Err: err, Unsent: true}
			return false
		case ok:
			return true
		}
	}
	m.Message = ordinary(m.Message)
	return true
}

// ordinary returns the message without what makes it a scheduled run.
func ordinary(m *queue.Message) *queue.Message {
	plain := *m
	plain.Run = nil
	plain.Attributes = slices.DeleteFunc(slices.Clone(m.Attributes), func(a queue.Attribute) bool {
		return strings.HasPrefix(strings.ToLower(a.Name), queue.RunPrefix)
	})
	return &plain
}
