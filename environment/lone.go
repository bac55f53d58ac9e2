package environment

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tendril/app"
	"tendril/queue"
)

const (
	// loneIdle is how long the copy for suspects outlives the last of them.
	loneIdle = time.Minute
	// postponed is when a suspect is asked for again that could not be tried yet.
	postponed = 200 * time.Millisecond
)

// lone delivers messages that may kill the app, one at a time, to a copy of the
// app that has nothing else: its death tells on exactly one message, and the
// other copies work on meanwhile.
type lone struct {
	e    *Environment
	turn chan struct{} // holds one token: who has it may use the copy

	mu      sync.Mutex
	copy    *appCopy
	version int // of the copy
	used    time.Time
}

func newLone(e *Environment) *lone {
	l := &lone{e: e, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// deliver tries one suspect. While another one is being tried nothing is done:
// the worker keeps the message and comes again.
func (l *lone) deliver(ctx context.Context, r *route, m *queue.Message) queue.Result {
	select {
	case <-l.turn:
		defer func() { l.turn <- struct{}{} }()
	default:
		return queue.Result{Outcome: queue.Postponed, Reason: "it waits to be tried alone", RetryAfter: postponed}
	}
	c, err := l.ready(ctx)
	if err != nil {
		return queue.Result{Outcome: queue.Postponed, Reason: "the copy of the app that tries suspects is not ready",
			Err: err, RetryAfter: 5 * postponed}
	}
	result, _ := r.to(ctx, c, m, true)
	l.mu.Lock()
	l.used = time.Now()
	l.mu.Unlock()
	if result.Outcome == queue.Unreached { // which says nothing of the copies that serve
		result.Outcome, result.RetryAfter = queue.Postponed, postponed
	}
	return result
}

// ready returns the copy once it takes requests, and starts it where needed.
func (l *lone) ready(ctx context.Context) (*appCopy, error) {
	v := l.e.app.Version()
	l.mu.Lock()
	c := l.copy
	stale := c != nil && l.version != v.number
	l.mu.Unlock()
	if stale {
		l.stop()
		c = nil
	}
	if c == nil {
		var err error
		if c, err = l.launch(ctx, v); err != nil {
			return nil, err
		}
	}
	limit := time.NewTimer(l.e.s.DeployTimeout)
	defer limit.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !c.member.Ready() {
		select {
		case <-look.C:
		case <-c.Failed():
			l.stop() // the next suspect has it started anew
			return nil, c.Err()
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-limit.C:
			return nil, fmt.Errorf("it was not ready within %s", l.e.s.DeployTimeout)
		}
	}
	return c, nil
}

func (l *lone) launch(ctx context.Context, v version) (*appCopy, error) {
	launch := launcher{l.e}
	address, err := launch.Address(v)
	if err != nil {
		return nil, err
	}
	// A member that is never admitted gets nothing but what is handed to it here.
	replica, err := launch.Launch(ctx, v, app.NewRouter(nil).Add(address))
	if err != nil {
		return nil, err
	}
	c := replica.(*appCopy)
	l.mu.Lock()
	l.copy, l.version, l.used = c, v.number, time.Now()
	l.mu.Unlock()
	l.e.report.note(slog.LevelInfo, "isolate",
		fmt.Sprintf("%s is started to try messages alone that may have ended the app", c.name()))
	return c, nil
}

// current returns the copy, nil when there is none.
func (l *lone) current() *appCopy {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copy
}

// stop ends the copy, if there is one, within its grace.
func (l *lone) stop() {
	l.mu.Lock()
	c := l.copy
	l.copy = nil
	l.mu.Unlock()
	if c != nil {
		_ = c.Stop(l.e.urgent) // what outlives its KILL is told by the supervisor
	}
}

// renew ends the copy of an old version as soon as it is not in use.
func (l *lone) renew() {
	select {
	case <-l.turn:
		l.stop()
		l.turn <- struct{}{}
	default: // whoever uses it now sees the version change
	}
}

// tidy ends the copy when no suspect has come for a while, until ctx ends.
func (l *lone) tidy(ctx context.Context) {
	tick := time.NewTicker(loneIdle / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			l.mu.Lock()
			idle := l.copy != nil && now.Sub(l.used) > loneIdle
			l.mu.Unlock()
			select {
			case <-l.turn:
				if idle {
					l.stop()
				}
				l.turn <- struct{}{}
			default:
			}
		}
	}
}

// finderEvents tells what is found out about messages that end the app.
func (e *Environment) finderEvents() app.DetectorEvents {
	note := func(level slog.Level, text string, attrs ...slog.Attr) {
		e.report.note(level, "isolate", text, attrs...)
	}
	return app.DetectorEvents{
		Quarantined: func(ids []string) {
			note(slog.LevelWarn, fmt.Sprintf("the app ended with %d messages in work; each is tried alone now", len(ids)),
				slog.Int("messages", len(ids)))
		},
		Cleared: func(id string) {
			note(slog.LevelDebug, fmt.Sprintf("message %s did not end the app", id), slog.String("message_id", id))
		},
		Detected: func(id string, times int) {
			note(slog.LevelError,
				fmt.Sprintf("message %s ends the app (%d times so far); it is tried alone until its queue dead-letters it", id,
					times), slog.String("message_id", id))
		},
		Broken: func(broken bool) {
			if broken {
				note(slog.LevelError, "whatever message the app gets ends it: it counts as an app that crashes by itself")
				return
			}
			note(slog.LevelInfo, "the app lives again")
		},
	}
}
