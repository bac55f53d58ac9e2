package environment

import (
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
		Adaptive: e.s.AdaptiveConcurrency, Events: e.Logger.Limiter(target),
	}
	if e.s.Breaker > 0 {
		opts.Breaker = &limit.Breaker{FailureRatio: float64(e.s.Breaker) / 100, Window: e.s.BreakerWindow,
			Delay: e.s.BreakerDelay}
	}
	return opts
}
