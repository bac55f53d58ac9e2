package tasks

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"tendril/internal/cron/leader"
	"tendril/internal/cron/periodic"
	"tendril/queue"
)

// A run shorter than markAfter needs no lease: the next one is not due before then.
const (
	markAfter = time.Second
	markLease = time.Minute
	markRenew = markLease / 3
	markRetry = 5 * time.Second
	markLimit = 10 * time.Second // per call
)

type runningTasks struct {
	store        leader.Store
	queue, owner string
	log          *slog.Logger
	run          context.Context // once it is done, leases expire
	work         *sync.WaitGroup

	mu     sync.Mutex
	marked map[string]context.CancelFunc
	seen   map[string]seenLease
}

type seenLease struct {
	version string
	at      time.Time
}

func (r *runningTasks) mark(task string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.marked[task] != nil || r.run.Err() != nil {
		return
	}
	ctx, release := context.WithCancel(r.run)
	r.marked[task] = release
	r.work.Go(func() { r.holdLease(ctx, task) })
}

func (r *runningTasks) unmark(task string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if release := r.marked[task]; release != nil {
		delete(r.marked, task)
		release()
	}
}

func (r *runningTasks) holdLease(ctx context.Context, task string) {
	var stored queue.Lease
	written := false
	for pause := markAfter; ; {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if written && r.run.Err() == nil {
				_, _ = r.writeLease(task, stored, true) // otherwise, the lease expires
			}
			return
		}

		var err error
		stored, err = r.writeLease(task, stored, false)
		if err == nil {
			written = true
			pause = markRenew
			continue
		}
		pause = markRetry
		if ctx.Err() == nil {
			r.log.Warn("other instances not notified of a running task", "task", task, "err", err)
		}
	}
}

// writeLease ignores the lease's holder: the last instance to write holds it.
func (r *runningTasks) writeLease(task string, stored queue.Lease, released bool) (queue.Lease, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.run), markLimit)
	defer cancel()
	next := queue.Lease{Owner: r.owner, Version: uuid.NewString(), Term: 1, Duration: markLease, Released: released}
	won, current, err := r.store.Swap(ctx, periodic.RunningLease(r.queue, task), stored, next)
	if err == nil && !won && !released {
		_, current, err = r.store.Swap(ctx, periodic.RunningLease(r.queue, task), current, next)
	}
	return current, err
}

// runsElsewhere ignores a lease that has not changed for its duration, because its holder is dead.
func (r *runningTasks) runsElsewhere(ctx context.Context, task string) (bool, error) {
	l, err := r.store.Read(ctx, periodic.RunningLease(r.queue, task))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		return false, err
	case l.Version == "" || l.Released:
		delete(r.seen, task)
		return false, nil
	case r.seen[task].version != l.Version:
		r.seen[task] = seenLease{l.Version, time.Now()}
	}
	return time.Since(r.seen[task].at) < l.Duration, nil
}
