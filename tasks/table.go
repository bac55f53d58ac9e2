package tasks

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"tendril/aws"
	"tendril/periodic"
	"tendril/queue"
)

// tableRuns keeps the records of runs in a DynamoDB table.
type tableRuns struct {
	runs *aws.Runs
	// processTerm is recorded in the place of the term of the only instance, which is the
	// same after each start; 0 where a leader is elected. A claim that an earlier process
	// left unsettled is another's by it: it takes a second try to send again, which is
	// counted, and on a FIFO queue not made too late.
	processTerm int64
}

// newLocalTableRuns returns the records of an instance that is declared the only one: nobody
// writes a lease that could fence its claims.
func newLocalTableRuns(runs *aws.Runs) tableRuns {
	return tableRuns{runs: runs.Unfenced(), processTerm: time.Now().UnixNano()}
}

// recorded returns the term that a record has for one of this instance.
func (s tableRuns) recorded(term int64) int64 {
	if s.processTerm != 0 && term != 0 {
		return s.processTerm
	}
	return term
}

// Since implements [periodic.Store].
func (s tableRuns) Since(ctx context.Context, term int64, starts map[string]periodic.Start) (map[string]time.Time,
	error) {
	from, schedules := make(map[string]time.Time, len(starts)), make(map[string]string, len(starts))
	for task, start := range starts {
		from[task], schedules[task] = start.At, start.Schedule
	}
	return s.runs.SinceUnder(ctx, term, from, schedules)
}

// Claim implements [periodic.Store].
func (s tableRuns) Claim(ctx context.Context, term int64, run periodic.ScheduledRun, try int) (periodic.Claim, error) {
	r, err := s.runs.Claim(ctx, s.recorded(term), tableRun(run), try)
	claim := periodic.Claim{Tries: r.Tries, Term: r.Term, Settled: r.Settled, MessageID: r.MessageID}
	if s.processTerm != 0 {
		if claim.Term = 0; r.Term == s.recorded(term) {
			claim.Term = term
		}
	}
	return claim, err
}

// Mark implements [periodic.Store].
func (s tableRuns) Mark(ctx context.Context, term int64, run periodic.ScheduledRun, messageID string) error {
	return s.runs.Mark(ctx, s.recorded(term), tableRun(run), messageID)
}

// Records implements [periodic.Store].
func (s tableRuns) Records(ctx context.Context, runs []periodic.ScheduledRun) (map[string]periodic.Claim, error) {
	ids := make([]string, len(runs))
	for i := range runs {
		ids[i] = runs[i].ID
	}
	known, err := s.runs.Records(ctx, ids)
	records := make(map[string]periodic.Claim, len(known))
	for id, r := range known {
		records[id] = periodic.Claim{Tries: r.Tries, Settled: r.Settled, MessageID: r.MessageID}
	}
	return records, err
}

// Known reports whether a run was claimed for this path.
func (s tableRuns) Known(ctx context.Context, id, path string) (bool, error) {
	return s.runs.Known(ctx, id, path)
}

func tableRun(run periodic.ScheduledRun) aws.Run {
	return aws.Run{ID: run.ID, Task: run.Task, At: run.ScheduledAt, Manual: run.Manual, Path: run.Path}
}

// sqsSender sends runs to the environment's first queue on Amazon SQS, or to another one that
// a task names.
type sqsSender struct {
	sqs  *aws.SQS
	name string     // of the first queue
	home *aws.Queue // the first queue itself

	mu     sync.Mutex
	queues map[string]*aws.Queue
}

// Send implements [periodic.Sender].
func (s *sqsSender) Send(ctx context.Context, name string, m queue.Outgoing) (queue.Sent, error) {
	q, err := s.find(ctx, name)
	if err != nil {
		return queue.Sent{}, errors.Join(periodic.ErrNotSent, err)
	}
	sent, err := q.SendOnce(ctx, m)
	return sent, errors.Join(err, sent.Err)
}

func (s *sqsSender) find(ctx context.Context, name string) (*aws.Queue, error) {
	if s.home != nil && name == s.name {
		return s.home, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[name]; q != nil {
		return q, nil
	}
	q, err := s.sqs.Queue(ctx, name)
	if err == nil {
		s.queues[name] = q
	}
	return q, err
}

// prepareTable checks the table, or creates it, until ctx is done.
func prepareTable(ctx context.Context, table *aws.Table, name string, create bool, log *slog.Logger) {
	err := table.Check(ctx)
	if err != nil && create {
		err = table.Create(ctx)
	}
	switch {
	case err == nil:
		expireRecords(ctx, table, name, create, log)
	case !errors.Is(err, context.Canceled):
		log.Warn("registry table not available, periodic tasks wait for it", "table", name, "err", err)
	}
}

// expireRecords makes the records of old runs leave the table, or logs that they do not.
// Nothing waits for that.
func expireRecords(ctx context.Context, table *aws.Table, name string, create bool, log *slog.Logger) {
	if create {
		if err := table.Expire(ctx); err != nil {
			log.Warn("records of old runs are never removed from the registry table", "table", name, "err", err)
		}
		return
	}
	expires, attribute, err := table.Expires(ctx)
	switch {
	case err != nil: // to look takes a permission that nothing else needs
		log.Debug("time to live of the registry table not known", "table", name, "err", err)
	case expires:
	case attribute != "":
		log.Warn("records of old runs are never removed from the registry table", "table", name,
			"reason", "another attribute than \"expires\" is its time to live",
			"attribute", attribute, "hint", "name another table with --registry-table")
	default:
		log.Warn("records of old runs are never removed from the registry table", "table", name,
			"reason", "it has no time to live", "hint", "give --registry-create, or run aws "+
				"dynamodb update-time-to-live --table-name "+name+" --time-to-live-specification "+
				"Enabled=true,AttributeName=expires")
	}
}
