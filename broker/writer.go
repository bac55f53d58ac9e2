package broker

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"tendril/queue"
)

// request is one change of the store. The writer applies many in one
// transaction, commits, and then tells them in the same order.
type request interface {
	// apply makes the change in the transaction. It may run again after a
	// rollback. An error fails the whole transaction; a request that
	// cannot be granted notes that for itself and changes nothing.
	apply(t *tx) error
	// onCommit learns how the commit went, publishes the change to memory and
	// lets the caller go on.
	onCommit(err error)
	// needs tells whether the commit must be on the disk before onCommit, and
	// whether the change takes up space: it is refused when the disk is full.
	needs() (durable, space bool)
}

// change is the request of an administrative act. run makes it in the
// transaction; after publishes it when it is on disk.
type change struct {
	run   func(t *tx) error
	after func()
	done  chan error
}

func (c *change) needs() (durable, space bool) { return true, false }
func (c *change) apply(t *tx) error            { return c.run(t) }
func (c *change) onCommit(err error) {
	if err == nil {
		c.after()
	}
	c.done <- err
}

// change makes an administrative change and waits for its end.
func (w *writer) change(run func(t *tx) error, after func()) error {
	c := &change{run, after, make(chan error, 1)}
	return w.do(c, c.done)
}

// writer is the one goroutine that writes to the store. It takes what is
// pending into one transaction; the wait for the disk itself gathers the next
// group.
type writer struct {
	files   files
	wake    chan struct{} // holds one token while something is pending
	done    chan struct{} // closed when the goroutine has ended
	tx      *tx
	upkeep  *maintenance
	mu      sync.Mutex
	pending []request
	spare   []request // the last group's slice, for reuse
	closed  bool
	failure error // why nothing is accepted now
}

// groupLimit is the largest number of requests in one transaction.
const groupLimit = 512

// files are the broker's files, and how they are opened again after a failure.
type files struct {
	*core
	dir    string
	disk   *diskGuard
	reopen func() error // opens the store, verifies it, and brings memory in line with it
	resume func()       // starts the queues again
}

func newWriter(f files) *writer {
	return &writer{files: f, wake: make(chan struct{}, 1), done: make(chan struct{}), tx: newTx(f.store.Load().write),
		upkeep: newMaintenance(f)}
}

// submit hands a request over; onCommit will be called on it. It fails at once
// when the broker is closed or the store has failed.
func (w *writer) submit(r request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return queue.ErrClosed
	}
	if w.failure != nil {
		return w.failure
	}
	w.pending = append(w.pending, r)
	w.signal()
	return nil
}

// failed says why nothing is accepted now; nil while all is well.
func (w *writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure
}

// doUntil submits a request and waits for its end, or for ctx's: then the request goes
// on alone.
func (w *writer) doUntil(ctx context.Context, r request, done <-chan error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.submit(r); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do submits a request that announces its end on done, and waits.
func (w *writer) do(r request, done <-chan error) error {
	if err := w.submit(r); err != nil {
		r.onCommit(err)
	}
	return <-done
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
		for {
			w.gather()
			group, closed := w.next()
			if len(group) > 0 {
				w.commit(group)
				continue
			}
			if closed {
				return
			}
			break
		}
	}
}

// gather lets the callers that are about to submit do so: without an fsync to
// wait for, groups would otherwise be small. It yields while that brings more.
func (w *writer) gather() {
	for before, still := 0, 0; still < gatherYields; {
		w.mu.Lock()
		n := len(w.pending)
		w.mu.Unlock()
		if n >= groupLimit {
			return
		}
		if still++; n > before {
			before, still = n, 0
		}
		runtime.Gosched()
	}
}

// gatherYields is how often in a row yielding may bring nothing.
const gatherYields = 4

// next takes the next group.
func (w *writer) next() (group []request, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.pending), groupLimit)
	group = append(w.spare[:0], w.pending[:n]...)
	rest := copy(w.pending, w.pending[n:])
	clear(w.pending[rest:])
	w.pending = w.pending[:rest]
	w.spare = group
	return group, w.closed
}

// commit brings a group to disk and tells its requests. On a full disk what takes up
// space is refused and the rest tried again alone; any other failure is fatal
// for the file: see recovery.go.
func (w *writer) commit(group []request) {
	group = w.refuseOnLowDisk(group)
	if len(group) == 0 {
		return
	}
	err := w.try(group)
	if isFull(err) {
		group = refuseGrowing(group)
		w.freeSpace()
		if err = nil; len(group) > 0 {
			err = w.try(group)
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
	w.upkeep.afterCommit()
	if err := w.upkeep.checkpoint(); err != nil && !isFull(err) {
		w.fail(nil, err)
	}
}

// freeSpace gives up the reserved file, and lets the log start over: deletes
// then need no more space than it has.
func (w *writer) freeSpace() {
	w.files.disk.giveUpReserve()
	// Without space for that either, the deletes fail, and say so.
	_ = w.files.store.Load().restartLog()
}

// refuseOnLowDisk refuses what takes up space while there is too little.
func (w *writer) refuseOnLowDisk(group []request) []request {
	if !slices.ContainsFunc(group, takesSpace) {
		return group
	}
	low, just := w.files.disk.low()
	if just {
		// While there is space for it; later deletes need none then.
		_ = w.files.store.Load().restartLog()
	}
	if low {
		return refuseGrowing(group)
	}
	return group
}

func takesSpace(r request) bool {
	_, space := r.needs()
	return space
}

// refuseGrowing refuses the requests of a group that take up space, and returns
// the others.
func refuseGrowing(group []request) (rest []request) {
	for _, r := range group {
		if takesSpace(r) {
			r.onCommit(errFull)
		} else {
			rest = append(rest, r)
		}
	}
	return rest
}

func finishAll(group []request, err error) {
	for _, r := range group {
		r.onCommit(err)
	}
}

// try runs one transaction. After an error it is rolled back, and the
// counters are as they were.
func (w *writer) try(group []request) error {
	err := w.files.store.Load().synchronous(slices.ContainsFunc(group, isDurable))
	if err == nil {
		err = w.transact(group)
	}
	if err != nil {
		w.tx.undo()
	}
	w.tx.reset()
	return err
}

func isDurable(r request) bool {
	durable, _ := r.needs()
	return durable
}

func (w *writer) transact(group []request) error {
	c := w.tx.c
	if _, err := c.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	err := w.applyAll(group)
	if err == nil {
		_, err = c.exec(`COMMIT`)
	}
	if err != nil {
		// SQLite may have rolled back by itself; then this has nothing to do.
		_, _ = c.exec(`ROLLBACK`)
	}
	return err
}

func (w *writer) applyAll(group []request) error {
	for _, r := range group {
		if err := r.apply(w.tx); err != nil {
			return err
		}
	}
	return errors.Join(w.tx.flush(), w.tx.flushCounters())
}

// errFull refuses what takes up space on a full disk.
var errFull = &queue.Error{
	Code: queue.CodeStorageFull,
	Message: "The disk that holds the queues has no space for more messages; receiving and deleting still work. Free " +
		"some space, or drain a queue.",
}
