package broker

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"tendril/queue"
)

// request is one change of the store. The writer applies many in one
// transaction, commits, and then tells them in the same order.
type request interface {
	// apply makes the change in the transaction. It may run again after a
	// rollback. An error fails the whole transaction; a request that
	// cannot be granted notes that for itself and changes nothing.
	apply(t *tx) error
	// onCommit learns how the commit went and publishes the change to memory. It returns
	// what the caller is told: err, or a refusal of its own.
	onCommit(err error) error
}

// needs are what a request asks of its commit.
type needs struct {
	durable bool // the commit must be on the disk before onCommit
	space   bool // the change takes up space: it is refused when the disk is full
}

// pendingRequest is a request on its way through the writer.
type pendingRequest struct {
	request request
	needs   needs
	done    chan error // learns the end; nil if no caller waits
}

func finishAll(group []pendingRequest, err error) {
	for _, r := range group {
		answer := r.request.onCommit(err)
		if r.done != nil {
			r.done <- answer
		}
	}
}

// change is the request of an administrative act. run makes it in the
// transaction; after, if not nil, publishes it when it is on disk.
type change struct {
	run   func(t *tx) error
	after func()
}

func (c *change) apply(t *tx) error { return c.run(t) }

func (c *change) onCommit(err error) error {
	if err == nil && c.after != nil {
		c.after()
	}
	return err
}

// change makes an administrative change and waits for its end.
func (w *writer) change(run func(t *tx) error, after func()) error {
	return w.do(context.Background(), &change{run, after}, needs{durable: true})
}

// writer is the one goroutine that writes to the store. It takes what is
// pending into one transaction; the wait for the disk itself gathers the next
// group.
type writer struct {
	b       *Broker
	restore func() error  // opens the store, checks it, and brings memory in line with it
	wake    chan struct{} // holds one token while something is pending
	done    chan struct{} // closed when the goroutine has ended
	tx      *tx
	upkeep  *maintenance
	mu      sync.Mutex
	pending []pendingRequest
	spare   []pendingRequest // the last group's slice, for reuse
	closed  bool
	failure error // why nothing is accepted now
}

// groupLimit is the largest number of requests in one transaction.
const groupLimit = 512

func newWriter(b *Broker, restore func() error) *writer {
	return &writer{b: b, restore: restore, wake: make(chan struct{}, 1), done: make(chan struct{}),
		tx: newTx(b.store.Load().write), upkeep: newMaintenance(b)}
}

// submit hands a request over; onCommit will be called on it, and done, if not nil, learns
// its answer. It fails at once when the broker is closed or the store has failed.
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

// failed says why nothing is accepted now; nil while all is well.
func (w *writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure
}

// do submits a request and waits for its end, or for ctx's: then the request goes
// on alone.
func (w *writer) do(ctx context.Context, r request, n needs) error {
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

// close refuses what comes from now on, commits what is pending and waits for
// the goroutine to end.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.signal()
	w.mu.Unlock()
	<-w.done
}

// run is the writer's goroutine.
func (w *writer) run() {
	defer close(w.done)
	defer w.upkeep.timer.Stop()
	for {
		select {
		case <-w.wake:
		case <-w.upkeep.timer.C:
			if w.upkeep.armed = false; w.failed() == nil {
				w.upkeep.run()
			}
			continue
		}

		group, closed := w.next()
		for ; len(group) > 0; group, closed = w.next() {
			w.commit(group)
		}

		if closed {
			return
		}
	}
}

// gatherYields is how often in a row yielding may bring nothing.
const gatherYields = 4

// next takes the next group. It first lets the callers that are about to submit do so,
// and yields while that brings more: without an fsync to wait for, groups would
// otherwise be small.
func (w *writer) next() (group []pendingRequest, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for before, still := 0, 0; still < gatherYields && len(w.pending) < groupLimit; {
		if still++; len(w.pending) > before {
			before, still = len(w.pending), 0
		}
		w.mu.Unlock()
		runtime.Gosched()
		w.mu.Lock()
	}
	n := min(len(w.pending), groupLimit)
	w.spare = append(w.spare[:0], w.pending[:n]...)
	w.pending = slices.Delete(w.pending, 0, n)
	return w.spare, w.closed
}

// commit brings a group to disk and tells its requests. On a full disk what takes up
// space is refused and the rest tried again alone; any other failure is fatal
// for the file: see fail.
func (w *writer) commit(group []pendingRequest) {
	if slices.ContainsFunc(group, func(r pendingRequest) bool { return r.needs.space }) {
		refusal, justLow := w.b.disk.refusal()
		if justLow {
			// While there is space for it; later deletes need none then.
			_ = w.b.store.Load().restartLog("RESTART")
		}
		if refusal != nil {
			group = refuseGrowing(group, refusal)
		}
	}

	if len(group) == 0 {
		return
	}

	err := w.tx.commit(w.b.store.Load(), group)
	if isFull(err) {
		group = refuseGrowing(group, errFull)
		w.b.disk.giveUpReserve()
		// Deletes then need no more space than the log has. Without space for that
		// either, they fail, and say so.
		_ = w.b.store.Load().restartLog("RESTART")
		if err = nil; len(group) > 0 {
			err = w.tx.commit(w.b.store.Load(), group)
		}
		if isFull(err) {
			finishAll(group, errFull)
			return
		}
	}

	if err != nil {
		w.fail(group, err)
		return
	}

	finishAll(group, nil)
	clear(group)
	if err := w.upkeep.afterCommit(); err != nil && !isFull(err) {
		w.fail(nil, err)
	}
}

// refuseGrowing refuses the requests of a group that take up space, and returns
// the others.
func refuseGrowing(group []pendingRequest, refusal error) (rest []pendingRequest) {
	for i, r := range group {
		if r.needs.space {
			finishAll(group[i:i+1], refusal)
		} else {
			rest = append(rest, r)
		}
	}
	return rest
}

// fail handles a failed commit. What the disk did with it is unknown, and a
// second fsync of the same file may report success for lost data: so nothing
// is accepted until the file was closed, opened again, and found to hold all
// that was ever acknowledged.
func (w *writer) fail(group []pendingRequest, cause error) {
	err := storageError("The disk refused a write; the queues accept nothing until their file could be opened again and "+
		"written. Look at the log and the disk.", cause)
	w.b.log.Error("Writing the queues' file failed; opening it again", "dir", w.b.dir, "err", cause)
	w.mu.Lock()
	w.failure = err
	group = append(group, w.pending...)
	w.pending = nil
	w.mu.Unlock()
	finishAll(group, err)
	w.reopen()
}

// reopen tries until the store is open and can be written, or the broker closes.
func (w *writer) reopen() {
	_ = w.b.disk.closing()
	_ = w.b.store.Load().close() // it has failed already
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := w.restore()
		if err == nil {
			w.tx = newTx(w.b.store.Load().write)
			w.mu.Lock()
			w.failure = nil
			w.mu.Unlock()
			w.b.log.Info("The queues' file is open again and accepts writes", "dir", w.b.dir)
			w.b.resumeQueues()
			w.b.resumeMoves()
			return
		}

		w.b.log.Error("The queues' file cannot be used yet; trying again", "dir", w.b.dir, "in", wait, "err", err)
		if w.pause(wait) {
			return
		}
	}
}

// pause waits, and reports whether the broker is closing.
func (w *writer) pause(wait time.Duration) bool {
	select {
	case <-time.After(wait):
	case <-w.wake: // nothing is submitted now: it is closing, or the token of before
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// errFull refuses what takes up space on a full disk.
var errFull = &queue.Error{
	Code: queue.CodeStorageFull,
	Message: "The disk that holds the queues has no space for more messages; receiving and deleting still work. Free " +
		"some space, or drain a queue.",
}

// errLost refuses what the next start would not find.
func errLost(cause error) error {
	return &queue.Error{
		Code: queue.CodeStorageFailed,
		Message: "The data directory is not the one that was opened: " + cause.Error() + ". Nothing is accepted until it " +
			"is back at its path, or tendril is started again; receiving and deleting still work.",
		Err: cause,
	}
}
