package telemetry

import (
	"log/slog"
	"sync"
	"sync/atomic"
)

type sinkStats struct {
	sink string
	// A later call may have sent the data.
	errors  int64
	dropped int64 // spans or statistic sets
}

type sink struct {
	name string
	data string
	log  *slog.Logger

	errors, dropped atomic.Int64

	mu      sync.Mutex
	failing bool
}

func (s *sink) recordResult(err error) {
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
		s.log.Warn("sending telemetry failed, retrying: deliveries are not affected",
			"component", "telemetry", "sink", s.name, "data", s.data, "err", err)
	default:
		s.log.Info("sending telemetry resumed", "component", "telemetry", "sink", s.name, "data", s.data,
			"errors", s.errors.Load(), "dropped", s.dropped.Load())
	}
}

func (s *sink) stats() sinkStats {
	return sinkStats{sink: s.name, errors: s.errors.Load(), dropped: s.dropped.Load()}
}

func loggerOrDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
