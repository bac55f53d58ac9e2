package telemetry

import (
	"log/slog"
	"sync"
	"sync/atomic"
)

// SinkStats counts what became of figures and spans on their way out of the
// process.
type SinkStats struct {
	// Sink is "cloudwatch", "otlp_traces" or "otlp_metrics".
	Sink string
	// Errors counts the calls that failed. What they carried may have been sent
	// again since.
	Errors int64
	// Dropped counts what was given up: spans, or figures of CloudWatch.
	Dropped int64
}

// sink follows whether one way out works, and says so when that changes: a
// collector that is down for a day is two lines in the log.
type sink struct {
	name, what string
	log        *slog.Logger

	errors, dropped atomic.Int64

	mu      sync.Mutex
	failing bool
}

// done takes the end of one call.
func (s *sink) done(err error) {
	if err != nil {
		s.errors.Add(1)
	}
	s.mu.Lock()
	changed := s.failing != (err != nil)
	s.failing = err != nil
	s.mu.Unlock()
	switch {
	case !changed:
	case err != nil:
		s.log.Warn(s.what+" cannot be sent; deliveries go on, and sending is tried again", "component", "telemetry", "sink", s.name, "err", err)
	default:
		s.log.Info(s.what+" can be sent again", "component", "telemetry", "sink", s.name,
			"errors", s.errors.Load(), "dropped", s.dropped.Load())
	}
}

func (s *sink) stats() SinkStats {
	return SinkStats{Sink: s.name, Errors: s.errors.Load(), Dropped: s.dropped.Load()}
}

// orDiscard is log, or one that writes nothing.
func loggerOrDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
