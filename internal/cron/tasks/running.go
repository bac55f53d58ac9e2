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

// Times of the leases of running tasks. A run that is over within markAfter needs no lease: the
// next one is not due by then.
const (
	markAfter = time.Second
	markLease = time.Minute
	markRenew = markLease / 3
	markRetry = 5 * time.Second
	markLimit = 10 * time.Second // of one call
)

// runningTasks tells the other instances which tasks run here, and knows which run there: those
// whose runs must not overlap. An instance that delivers a run of such a task holds a lease for it.
type runningTasks struct {
	store leader.Store
	// queue is part of the names of the leases; owner names this instance in them.
	queue, owner string
	log          *slog.Logger
	run          context.Context // nothing is written any more when it is done: the leases end by themselves
	work         *sync.WaitGroup

	mu   sync.Mutex
	held map[string]context.CancelFunc // by task
	seen map[string]seenLease          // by task
}

// seenLease is a version of a lease, and when it was seen first.
type seenLease struct {
	version string
	at      time.Time
}

// begin holds the lease of a task that runs here, until end.
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

// hold takes and renews the lease until holding ends, and gives it up then.
func (r *runningTasks) hold(holding context.Context, task string) {
	var stored queue.Lease
	taken := false
	for pause := markAfter; ; {
		select {
		case <-time.After(pause):
		case <-holding.Done():
			if taken && r.run.Err() == nil {
				_, _ = r.write(task, stored, true) // else it ends by itself
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
			r.log.Warn("other instances are not told that a task runs", "task", task, "err", err)
		}
	}
}

// write replaces the lease, whoever holds it: of two instances that run the task the last one to
// write is the one that others wait for.
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

// elsewhere reports whether another instance runs a task. An instance that died holds its lease
// until that was seen unchanged for as long as it lasts.
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
