package tasks

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"tendril/api"
	"tendril/internal/cron/periodic"
	"tendril/internal/host/datadir"
	"tendril/queue"
)

// HistoryFile is the name of the history file in the data directory.
const HistoryFile = "task-history.json"

// A killed process loses at most the changes of one interval.
const historyInterval = 5 * time.Second

type storedHistory struct {
	Runs []api.TaskRun `json:"runs"`
}

// KeepHistory writes changes of the history until ctx ends. It must stop after the workers, to include their last
// deliveries.
func (m *Manager) KeepHistory(ctx context.Context) {
	if m.opts.HistoryFile == "" {
		return
	}

	w := historyWriter{path: m.opts.HistoryFile, log: m.log}
	tick := time.Tick(historyInterval)
	for ended := false; !ended; {
		select {
		case <-tick:
		case <-ctx.Done():
			ended = true
		}
		if s := m.scheduling(); s != nil {
			w.writeChanges(s.scheduler)
		}
	}
}

type historyWriter struct {
	path    string
	log     *slog.Logger
	written int64 // changes in the file
	failing bool
}

func (w *historyWriter) writeChanges(s *periodic.Scheduler) {
	changes := s.Recorded()
	if changes == w.written {
		return
	}
	err := writeHistory(w.path, s.History(""))
	if err == nil {
		w.written = changes
	} else if !w.failing {
		w.log.Warn("task history not written, a restart forgets it", "file", w.path, "err", err)
	}
	w.failing = err != nil
}

func writeHistory(path string, runs []periodic.Run) error {
	stored := storedHistory{Runs: make([]api.TaskRun, len(runs))}
	for i := range runs {
		stored.Runs[i] = taskRun(runs[i])
	}
	return datadir.ReplaceJSON(path, stored)
}

func readHistory(path string, log *slog.Logger) []periodic.Run {
	if path == "" {
		return nil
	}

	var stored storedHistory
	if err := datadir.ReadJSON(path, &stored); err != nil {
		log.Warn("task history not read, starting a new one", "file", path, "err", err)
		return nil
	}

	runs := make([]periodic.Run, len(stored.Runs))
	for i := range stored.Runs {
		runs[i] = storedRun(&stored.Runs[i])
	}
	slices.Reverse(runs)
	return runs
}

func storedRun(r *api.TaskRun) periodic.Run {
	run := periodic.Run{
		Task: r.Task, ID: r.RunID, Manual: r.Manual, ScheduledAt: r.ScheduledAt, EnqueuedAt: r.EnqueuedAt,
		Lateness: time.Duration(r.LatenessMS) * time.Millisecond, Skipped: periodic.Reason(r.Skipped),
		MessageID: r.MessageID, Resent: r.Resent, Attempts: r.Attempts, FinishedAt: r.FinishedAt,
		Result: queue.Result{Status: r.Status, Reason: r.Reason, Duration: time.Duration(r.DurationMS) * time.Millisecond},
	}
	for outcome := queue.Failed; outcome <= queue.Postponed; outcome++ {
		if outcome.String() == r.Outcome {
			run.Result.Outcome = outcome
		}
	}
	return run
}
