package broker

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"tendril/queue"
)

// request is a change to the database. The writer applies a group of requests in one transaction, then calls their
// onCommit in order.
type request interface {
	// apply may run again after a rollback. A failed statement fails the whole transaction; to refuse only its own
	// request, apply records the refusal and changes nothing.
	apply(t *tx)
	// onCommit publishes the change to memory and returns the caller's result: err or a refusal.
	onCommit(err error) error
}

type needs uint8

const (
	needsFsync   needs = 1 << iota // must be on disk before onCommit is called
	needsSpace                     // refused while the disk is full
	needsNothing needs = 0
)

type pendingRequest struct {
	request request
	needs   needs
	done    chan error // nil if no caller waits
}

func finishAll(group []pendingRequest, err error) {
	for _, r := range group {
		answer := r.request.onCommit(err)
		if r.done != nil {
			r.done <- answer
		}
	}
}

// change is a request without a result. after may be nil.
type change struct {
	run   func(t *tx)
	after func()
}

func (c *change) apply(t *tx) { c.run(t) }

func (c *change) onCommit(err error) error {
	if err == nil && c.after != nil {
		c.after()
	}
	return err
}

func (w *writer) change(run func(t *tx), after func()) error {
	return w.do(&change{run, after}, needsFsync)
}

type writer struct {
	b           *Broker
	wake        chan struct{} // holds a token while requests are pending
	done        chan struct{}
	tx          *tx
	maintenance *maintenance
	mu          sync.Mutex
	pending     []pendingRequest
	spare       []pendingRequest // the previous group's slice, reused
	closed      bool
	failure     error
}

const groupLimit = 512

func newWriter(b *Broker) *writer {
	return &writer{b: b, wake: make(chan struct{}, 1), done: make(chan struct{}),
		tx: newTx(b.store.Load().write), maintenance: newMaintenance(b)}
}

// submit returns an error if the broker is closed or the store has failed. The result goes to done, if not nil.
func (w *writer) submit(r request, n needs, done chan error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return queue.ErrClosed
	}
	if w.failure != nil {
		return w.failure
	}
	w.pending = append(w.pending, pendingRequest{r, n, done})
	w.signal()
	return nil
}

func (w *writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure
}

func (w *writer) do(r request, n needs) error { return w.doUntil(context.Background(), r, n) }

// If ctx is done after the request was submitted, the request continues in the background.
func (w *writer) doUntil(ctx context.Context, r request, n needs) error {
	if err := ctx.Err(); err != nil {
		return r.onCommit(err)
	}
	done := make(chan error, 1)
	if err := w.submit(r, n, done); err != nil {
		return r.onCommit(err)
	}

	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.signal()
	w.mu.Unlock()
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	defer w.maintenance.timer.Stop()
	for {
		select {
		case <-w.wake:
		case <-w.maintenance.timer.C:
			w.maintenance.run()
			continue
		}

		group, closed := w.next()
		for ; len(group) > 0; group, closed = w.next() {
			w.commit(group)
		}

		if closed {
			if w.failed() == nil {
				w.commit(w.b.lastReceives())
			}
			return
		}
	}
}

// gather returns after gatherYields yields without a new request.
const gatherYields = 4

// The group is valid until the next call.
func (w *writer) next() (group []pendingRequest, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gather()
	n := min(len(w.pending), groupLimit)
	w.spare = append(w.spare[:0], w.pending[:n]...)
	w.pending = slices.Delete(w.pending, 0, n)
	return w.spare, w.closed
}

// gather yields to callers about to submit: without an fsync to wait for, groups would be small. The caller must hold
// the lock, which gather releases meanwhile.
func (w *writer) gather() {
	before := 0
	for yields := 0; yields < gatherYields && len(w.pending) < groupLimit; {
		yields++
		if len(w.pending) > before {
			before = len(w.pending)
			yields = 0
		}
		w.mu.Unlock()
		runtime.Gosched()
		w.mu.Lock()
	}
}

func (w *writer) commit(group []pendingRequest) {
	group = w.refuseIfLow(group)
	if len(group) == 0 {
		return
	}

	err := w.tx.commit(w.b.store.Load(), group)
	if isFull(err) {
		group, err = w.retryFull(group)
	}
	if err != nil {
		if isFull(err) {
			finishAll(group, errFull)
		} else {
			w.fail(group, err)
		}
		return
	}

	finishAll(group, nil)
	clear(group)
	if err := w.maintenance.afterCommit(); err != nil && !isFull(err) {
		w.fail(nil, err)
	}
}

func (w *writer) refuseIfLow(group []pendingRequest) []pendingRequest {
	if !slices.ContainsFunc(group, func(r pendingRequest) bool { return r.needs&needsSpace != 0 }) {
		return group
	}
	refusal, justLow := w.b.disk.refusal()
	if justLow {
		// Restart the log, so that later deletes fit into the space it already has.
		_ = w.b.store.Load().restartLog("RESTART")
	}
	if refusal == nil {
		return group
	}
	return refuseGrowing(group, refusal)
}

// retryFull refuses the requests that need space and commits the others. It returns the committed requests and the
// result.
func (w *writer) retryFull(group []pendingRequest) ([]pendingRequest, error) {
	group = refuseGrowing(group, errFull)
	w.b.disk.giveUpReserve()
	// Deletes reuse the restarted log's space. They fail if not even the checkpoint has space.
	_ = w.b.store.Load().restartLog("RESTART")
	if len(group) == 0 {
		return nil, nil
	}
	return group, w.tx.commit(w.b.store.Load(), group)
}

func refuseGrowing(group []pendingRequest, refusal error) (rest []pendingRequest) {
	for i, r := range group {
		if r.needs&needsSpace != 0 {
			finishAll(group[i:i+1], refusal)
		} else {
			rest = append(rest, r)
		}
	}
	return rest
}

// fail rejects all requests until the file has been reopened and accepts a write: a failed commit's effect on the
// disk is unknown, and a second fsync may report success although data was lost.
func (w *writer) fail(group []pendingRequest, cause error) {
	err := storageError(w.b.dir, "A write to disk failed; the queues accept no changes until their file is reopened. "+
		"Check the log and the disk.", cause)
	w.b.log.Error("writing the queue database failed, reopening it", "dir", w.b.dir, "err", adviseRestore(w.b.dir, cause))
	w.mu.Lock()
	w.failure = err
	group = append(group, w.pending...)
	w.pending = nil
	w.mu.Unlock()
	finishAll(group, err)
	w.reopen()
}

func (w *writer) reopen() {
	_ = w.b.disk.checkBeforeClose()
	_ = w.b.store.Load().close()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := w.b.restore()
		if err == nil {
			break
		}
		w.b.log.Error("queue database still unusable, retrying", "dir", w.b.dir, "in", wait, "err", err)
		if closed := w.pause(wait); closed {
			return
		}
	}

	w.tx = newTx(w.b.store.Load().write)
	w.mu.Lock()
	w.failure = nil
	w.mu.Unlock()
	w.b.log.Info("queue database reopened, writes are accepted", "dir", w.b.dir)
	w.b.resumeQueues()
	w.b.resumeMoves()
}

func (w *writer) pause(wait time.Duration) (closed bool) {
	select {
	case <-time.After(wait):
	case <-w.wake: // closing, or a token left over
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

var errFull = &queue.Error{
	Code: queue.CodeStorageFull,
	Message: "The disk that holds the queues has no space for more messages; receiving and deleting still work. Free " +
		"some space, or drain a queue.",
}

func errDataDirLost(cause error) error {
	return &queue.Error{
		Code: queue.CodeStorageFailed,
		Message: "The data directory is not the one that was opened: " + cause.Error() + ". Changes are rejected until " +
			"it is back at its path or tendril is restarted; receiving and deleting still work.",
		Err: cause,
	}
}
