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

	mu   sync.Mutex
	held map[string]context.CancelFunc
	seen map[string]seenLease
}

type seenLease struct {
	version string
	at      time.Time
}

func (r *runningTasks) begin(task string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[task] != nil || r.run.Err() != nil {
		return
	}
	holding, release := context.WithCancel(r.run)
	r.held[task] = release
	r.work.Go(func() { r.hold(holding, task) })
}

func (r *runningTasks) end(task string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if release := r.held[task]; release != nil {
		delete(r.held, task)
		release()
	}
}

func (r *runningTasks) hold(holding context.Context, task string) {
	var stored queue.Lease
	taken := false
	for pause := markAfter; ; {
		select {
		case <-time.After(pause):
		case <-holding.Done():
			if taken && r.run.Err() == nil {
				_, _ = r.write(task, stored, true) // otherwise, the lease expires
			}
			return
		}

		var err error
		if stored, err = r.write(task, stored, false); err == nil {
			pause, taken = markRenew, true
			continue
		}
		pause = markRetry
		if holding.Err() == nil {
			r.log.Warn("other instances not notified of a running task", "task", task, "err", err)
		}
	}
}

// write ignores the lease's holder: the last instance to write holds it.
func (r *runningTasks) write(task string, stored queue.Lease, released bool) (queue.Lease, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.run), markLimit)
	defer cancel()
	next := queue.Lease{Owner: r.owner, Version: uuid.NewString(), Term: 1, Duration: markLease, Released: released}
	won, current, err := r.store.Swap(ctx, periodic.RunningLease(r.queue, task), stored, next)
	if err == nil && !won && !released {
		_, current, err = r.store.Swap(ctx, periodic.RunningLease(r.queue, task), current, next)
	}
	return current, err
}

// elsewhere reports whether an instance holds the task's lease. A dead one's expires after being unchanged for its
// duration.
func (r *runningTasks) elsewhere(ctx context.Context, task string) (bool, error) {
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
