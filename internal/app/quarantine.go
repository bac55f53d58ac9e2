package app

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"tendril/api"
	"tendril/queue"
)

const (
	quarantineIdle  = time.Minute
	quarantinePause = 200 * time.Millisecond // before an undelivered message is retried
	quarantineStart = time.Second            // the same if the replica is not ready
)

type quarantine struct {
	replicas *replicaSet // starts the separate replica, which the balancer never admits
	using    sync.Mutex

	mu      sync.Mutex
	replica *replica
	used    time.Time
}

func (q *quarantine) deliver(ctx context.Context, to func(*replica) queue.Result) queue.Result {
	if !q.using.TryLock() {
		return queue.Result{Outcome: queue.Postponed, Reason: "waiting to be delivered alone",
			RetryAfter: quarantinePause}
	}

	defer q.using.Unlock()
	r, err := q.readyReplica(ctx)
	if err != nil {
		return queue.Result{Outcome: queue.Postponed, Reason: "the replica for quarantined messages is not ready",
			Err: err, RetryAfter: quarantineStart}
	}

	result := to(r)
	q.mu.Lock()
	q.used = time.Now()
	q.mu.Unlock()
	if result.Outcome == queue.Unreached { // says nothing about the serving replicas
		result.Outcome, result.RetryAfter = queue.Postponed, quarantinePause
	}

	return result
}

func (q *quarantine) readyReplica(ctx context.Context) (*replica, error) {
	r, err := q.currentReplica(ctx)
	if err != nil {
		return nil, err
	}
	err = awaitReady(ctx, []*replica{r}, q.replicas.opts.readyTimeout())
	if r.err() != nil {
		q.stop()
	}
	if err == nil && r.version.number != q.replicas.current().number {
		err = errors.New("another version was deployed while it started")
	}
	return r, err
}

// currentReplica starts a replica unless one runs the serving version.
func (q *quarantine) currentReplica(ctx context.Context) (*replica, error) {
	v := q.replicas.current()
	if r := q.running(); r != nil && r.version.number == v.number {
		return r, nil
	}

	q.stop()
	r, err := q.replicas.launchOne(ctx, v)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	q.replica, q.used = r, time.Now()
	q.mu.Unlock()
	q.replicas.opts.log.Info("replica for quarantined messages started", "process", r.name())
	return r, nil
}

func (q *quarantine) running() *replica {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.replica
}

// stop ignores errors, because the supervisor reports processes that survive SIGKILL.
func (q *quarantine) stop() {
	q.mu.Lock()
	r := q.replica
	q.replica = nil
	q.mu.Unlock()
	if r != nil {
		_ = r.Stop(q.replicas.opts.hurry)
	}
}

// stopUnused stops the replica unless it is in use. If its version is no longer serving, the next delivery replaces it.
func (q *quarantine) stopUnused() {
	if q.using.TryLock() {
		q.stop()
		q.using.Unlock()
	}
}

// restart stops the named replica; the next delivery starts a new one. It fails during a delivery, because the exit
// would look like a crash.
func (q *quarantine) restart(name string) (found bool, err error) {
	if r := q.running(); r == nil || r.name() != name {
		return false, nil
	}
	if !q.using.TryLock() {
		return true, &api.Error{Status: http.StatusConflict, Message: "process " + strconv.Quote(name) +
			" is processing a message in quarantine", Hint: "try again when the message is done; the process handles one message at a time"}
	}
	defer q.using.Unlock()
	q.stop()
	return true, nil
}

func (q *quarantine) stopIdle(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-time.After(quarantineIdle / 4):
			q.mu.Lock()
			idle := q.replica != nil && now.Sub(q.used) > quarantineIdle
			q.mu.Unlock()
			if idle {
				q.stopUnused()
			}
		}
	}
}
