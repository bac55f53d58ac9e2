package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/queue"
)

// Runs manages an environment's tasks, scheduled runs and pauses. Calls with an outdated term return
// [queue.ErrStaleTerm]; term 0 is for manual requests. Runs is safe for concurrent use, but only one call at a time may
// be made for a task.
type Runs struct {
	store Store
	scope Scope

	// queues is the store, if it can enqueue in a transaction. Otherwise, sender sends messages after a check with
	// lead, because the queue does not check terms.
	queues QueueStore
	sender Sender
	lead   Leadership

	mu      sync.Mutex
	pending map[string]*pendingRun // by run ID
}

// NewRuns returns the runs of an environment whose queues are in store.
func NewRuns(store QueueStore, scope Scope) *Runs {
	return &Runs{store: store, scope: scope, queues: store}
}

// NewSentRuns returns the runs of an environment whose queues are outside store.
func NewSentRuns(store Store, scope Scope, sender Sender, lead Leadership) *Runs {
	return &Runs{store: store, scope: scope, sender: sender, lead: lead, pending: map[string]*pendingRun{}}
}

// Since returns each task's times, and records new tasks with their start. If the schedule has changed, times before
// its start count as accounted for. An earlier start, after a clock was set back, replaces the recorded one.
func (r *Runs) Since(ctx context.Context, term int64, starts map[string]Start) (map[string]queue.TaskTimes, error) {
	tasks := slices.Sorted(maps.Keys(starts))
	keys := make([]string, len(tasks))
	for i, task := range tasks {
		keys[i] = r.scope.Key(task)
		if err := checkName("task", keys[i]); err != nil {
			return nil, err
		}
	}

	start := func(i int, row Record) Record { return withStart(row, starts[tasks[i]]) }
	rows, err := r.readAndUpdate(ctx, r.scope.Fence(term), start, KindTask, keys...)
	if err != nil {
		return nil, err
	}

	times := make(map[string]queue.TaskTimes, len(tasks))
	for i, task := range tasks {
		times[task] = TimesOf(rows[i])
	}
	return times, nil
}

func withStart(row Record, start Start) Record {
	at, times := start.At.UnixMilli(), TimesOf(row)
	schedule := row.Fields.text("schedule")
	isNew := len(row.Fields) == 0
	changed := start.Schedule != "" && schedule != "" && start.Schedule != schedule

	next := Fields{}
	if start.Schedule != "" {
		next["schedule"] = start.Schedule
	}
	if isNew || changed && times.UpTo.UnixMilli() < at {
		next["last_ms"] = at
	}
	if isNew || changed || at < times.From.UnixMilli() {
		next["from_ms"] = at
	}
	return row.With(next)
}

// TimesOf returns the times in a task's record.
func TimesOf(row Record) (times queue.TaskTimes) {
	if ms, ok := row.Fields["last_ms"].(int64); ok {
		times.UpTo = time.UnixMilli(ms).UTC()
	}
	if ms, ok := row.Fields["from_ms"].(int64); ok {
		times.From = time.UnixMilli(ms).UTC()
	}
	return times
}

func (r *Runs) readAndUpdate(ctx context.Context, fence Fence, change func(i int, stored Record) Record, kind Kind,
	keys ...string) ([]Record, error) {
	rows, err := r.store.Read(ctx, kind, keys...)
	if err != nil {
		return nil, err
	}
	return rows, r.update(ctx, fence, rows, change)
}

// update replaces records, in the store and in the slice, and retries after a conflict. It checks the fence even if
// nothing changes.
func (r *Runs) update(ctx context.Context, fence Fence, records []Record, change func(i int, stored Record) Record) error {
	for first := true; ; first = false {
		var changes []Change
		var changed []int
		for i, stored := range records {
			if next := change(i, stored); !Same(stored, next) {
				changes = append(changes, Change{stored, next})
				changed = append(changed, i)
			}
		}
		if len(changes) == 0 && (!first || fence == Fence{}) {
			return nil
		}

		stored, err := r.store.Swap(ctx, fence, changes...)
		if err != nil {
			return err
		}
		for n, i := range changed {
			records[i] = stored[n]
		}
	}
}

func accountedFor(row Record, run *Run) Record {
	if len(row.Fields) > 0 && !TimesOf(row).UpTo.Before(run.ScheduledAt) {
		return row
	}
	return row.With(Fields{"last_ms": run.ScheduledAt.UnixMilli()})
}

func (r *Runs) account(ctx context.Context, fence Fence, run *Run) error {
	change := func(_ int, row Record) Record { return accountedFor(row, run) }
	_, err := r.readAndUpdate(ctx, fence, change, KindTask, r.scope.Key(run.Task))
	return err
}

// Enqueue sends a run, unless it was already sent, and accounts for it, unless it is manual. After an error other than
// [ErrUncertain], it can be called again with the same run.
func (r *Runs) Enqueue(ctx context.Context, term int64, run Run) (EnqueueResult, error) {
	if err := run.check(r.scope); err != nil {
		return EnqueueResult{}, err
	}
	if r.queues == nil {
		return r.send(ctx, term, &run)
	}
	return r.enqueueInStore(ctx, term, &run)
}

func (r *Runs) enqueueInStore(ctx context.Context, term int64, run *Run) (EnqueueResult, error) {
	absent := r.absentRecord(run.ID)
	for {
		record := r.triedRecord(absent, term, run, 1).With(Fields{"settled": true})
		changes := []Change{{absent, record}}
		if !run.Manual {
			rows, err := r.store.Read(ctx, KindTask, r.scope.Key(run.Task))
			if err != nil {
				return EnqueueResult{}, err
			}
			changes = append(changes, Change{rows[0], accountedFor(rows[0], run)})
		}

		sent, conflict, err := r.queues.Enqueue(ctx, r.scope.Fence(term), run.Queue, run.Message, changes...)
		if err != nil || conflict == nil {
			return EnqueueResult{Sent: sent}, AdviseQueue(err, run.Queue)
		}
		if earlier := conflict[0].Fields; earlier != nil {
			sent := queue.Sent{ID: earlier.text("message"), SequenceNumber: earlier.text("sequence")}
			return EnqueueResult{Sent: sent, Already: true}, nil
		}
		// Only the task's record has changed, so try again.
	}
}

// AdviseQueue adds a hint to an error about a missing embedded queue.
func AdviseQueue(err error, name string) error {
	if errors.Is(err, &queue.Error{Code: queue.CodeQueueDoesNotExist}) {
		return fmt.Errorf("the queue %s does not exist: create it with 'tendril queues create %s', and name it in the "+
			"--queues of an environment: %w", name, name, err)
	}
	return err
}

func (r *Runs) absentRecord(id string) Record { return Record{Kind: KindRun, Key: r.scope.Key(id)} }

func (r *Runs) triedRecord(before Record, term int64, run *Run, number int) Record {
	fields := Fields{"task": run.Task, "at_ms": run.ScheduledAt.UnixMilli(), "term": term, "tries": int64(number),
		"settled": false}
	if run.Path != "" {
		fields["path"] = run.Path
	}
	before.Fields = fields
	before.Expires = time.Now().Add(runRetention)
	return before
}

func runRecordOf(r Record) RunRecord {
	tries, _ := r.Fields["tries"].(int64)
	term, _ := r.Fields["term"].(int64)
	settled, _ := r.Fields["settled"].(bool)
	return RunRecord{Tries: int(tries), Term: term, Settled: settled, MessageID: r.Fields.text("message")}
}

// Skip accounts for 1 to 1000 runs of one task, in order, without sending them. It returns the runs' existing records,
// by ID.
func (r *Runs) Skip(ctx context.Context, term int64, runs []Run) (map[string]RunRecord, error) {
	last := &runs[len(runs)-1]
	if err := last.check(r.scope); err != nil {
		return nil, err
	}
	keys := make([]string, len(runs))
	for i := range runs {
		keys[i] = r.scope.Key(runs[i].ID)
	}

	// Writes are fenced, so runs of earlier terms already have a record. If this term has ended, the write below fails.
	stored, err := r.store.Read(ctx, KindRun, keys...)
	if err != nil {
		return nil, fmt.Errorf("reading runs before skipping them: %w", err)
	}

	found := make(map[string]RunRecord, len(runs))
	for i := range runs {
		if stored[i].Fields != nil {
			found[runs[i].ID] = runRecordOf(stored[i])
		}
	}

	if r.queues == nil {
		err = r.skipRuns(ctx, term, runs, stored, found)
	} else {
		err = r.account(ctx, r.scope.Fence(term), last)
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Known reports whether any instance has sent, or announced, the run with a message for path.
func (r *Runs) Known(ctx context.Context, id, path string) (bool, error) {
	stored, err := r.store.Read(ctx, KindRun, r.scope.Key(id))
	if err != nil {
		return false, err
	}
	if record := runRecordOf(stored[0]); record.Tries == 0 && record.MessageID == "" {
		return false, nil
	}
	// Records of earlier versions have no path.
	recorded, ok := stored[0].Fields["path"].(string)
	return !ok || recorded == path, nil
}

// PausedTask is the prefix of the fields with reasons for pauses.
const PausedTask = "task:"

// SetPaused pauses or resumes a task on all instances. reason may be "".
func (r *Runs) SetPaused(ctx context.Context, task, reason string, paused bool) error {
	if err := checkName("task", task); err != nil {
		return err
	}
	if err := checkText("reason for pausing task "+task, reason); err != nil {
		return err
	}

	change := func(_ int, pauses Record) Record {
		if paused {
			return pauses.With(Fields{PausedTask + task: reason})
		}
		return pauses.Without(PausedTask + task)
	}
	unfenced := Fence{} // a user may pause a task in any term
	_, err := r.readAndUpdate(ctx, unfenced, change, KindPauses, r.scope.Name)
	return err
}

// Paused returns the reasons of the paused tasks.
func (r *Runs) Paused(ctx context.Context) (map[string]string, error) {
	stored, err := r.store.Read(ctx, KindPauses, r.scope.Name)
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	for name := range stored[0].Fields {
		if task, ok := strings.CutPrefix(name, PausedTask); ok {
			reasons[task] = stored[0].Fields.text(name)
		}
	}
	return reasons, nil
}
