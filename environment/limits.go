package environment

import (
	"fmt"
	"log/slog"

	"tendril/limit"
	"tendril/worker"
)

// limiter returns what protects the target of a line, nil when nothing does.
// Lines with one target share it.
func (e *Environment) limiter(l *line) worker.Limiter {
	if e.s.Rate == 0 && !e.s.AdaptiveConcurrency && e.s.Breaker == 0 {
		return nil
	}
	key := l.targetKey()
	if e.limiters[key] == nil {
		e.limiters[key] = limit.New(e.limitOptions(l.target))
	}
	return e.limiters[key]
}

// limitsByTarget returns the limiters by what people call their targets.
func (e *Environment) limitsByTarget() map[string]*limit.Limiter {
	named := map[string]*limit.Limiter{}
	for _, l := range e.lines {
		if limiter := e.limiters[l.targetKey()]; limiter != nil {
			named[l.goesTo()] = limiter
		}
	}
	return named
}

func (e *Environment) limitOptions(target string) *limit.Options {
	opts := &limit.Options{
		Rate: e.s.Rate, Concurrency: e.s.HTTPConnections, Batch: e.s.BatchSize,
		Adaptive: e.s.AdaptiveConcurrency, Events: e.limitEvents(target),
	}
	if e.s.Breaker > 0 {
		opts.Breaker = &limit.Breaker{FailureRatio: float64(e.s.Breaker) / 100, Window: e.s.BreakerWindow,
			Delay: e.s.BreakerDelay}
	}
	return opts
}

func (e *Environment) limitEvents(target string) *limit.Events {
	note := func(level slog.Level, text string) {
		e.report.note(level, "limit", text, slog.String("target", target))
	}
	return &limit.Events{
		Opened:       func(o limit.Opened) { note(slog.LevelWarn, o.String()) },
		HalfOpened:   func(h limit.HalfOpened) { note(slog.LevelInfo, h.String()) },
		Closed:       func(c limit.Closed) { note(slog.LevelInfo, c.String()) },
		LimitChanged: func(c limit.LimitChanged) { note(slog.LevelDebug, c.String()) },
	}
}

// limited tells the begin and the end of a time in which messages are kept back.
func (e *Environment) limited(queue string, l worker.Limited) {
	text := fmt.Sprintf("messages of %s are kept back by %s", queue, limitText(l.Reason))
	if l.Over {
		text = fmt.Sprintf("messages of %s were kept back by %s for %s", queue, limitText(l.Reason), short(l.For))
	}
	e.report.note(slog.LevelInfo, "limit", text, slog.String("queue", queue), slog.String("reason", l.Reason))
}

// limitText names what keeps messages back; a worker that waits for its turn
// does not know which limit it is.
func limitText(reason string) string {
	switch reason {
	case limit.ReasonRate, limit.ReasonConcurrency:
		return "the limit of " + reason
	case limit.ReasonBreaker:
		return "the breaker"
	}
	return "the limits"
}
