package broker

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"tendril/queue"
)

// request is one change of the store. The writer applies many in one
// transaction, commits, and then settles them in the same order.
type request interface {
	// apply makes the change in the transaction. It may run again after a
	// rollback. An error fails the whole transaction; a request that
	// cannot be granted notes that for itself and changes nothing.
	apply(t *tx) error
	// settle learns how the commit went, publishes the change to memory and
	// lets the caller go on.
	onCommit(err error)
	// durable reports whether the commit must be on the disk before settle.
	durable() bool
	// grows reports whether the change takes up room: it is refused when the
	// disk is full.
	grows() bool
}

// writer is the one goroutine that writes to the store. It takes what is
// pending into one transaction; the wait for the disk itself gathers the next
// group.
type writer struct {
	b    *Broker
	wake chan struct{} // holds one token while something is pending
	done chan struct{} // closed when the goroutine has ended
	tx   *tx

	commits        int   // for checkpoint.go
	logPages       int64 // the length of the log at which it is copied, ordinarily
	nextCheckpoint int64 // the length of the log at which one is due
	lastPages      int64 // its length when it was last looked at

	// Of cleaning up: see tidy.go.
	tidyAt     *time.Timer // the next look
	tidyArmed  bool
	lastCommit time.Time
	vacuumed   bool // pages were freed since the last checkpoint

	mu      sync.Mutex
	pending []request
	spare   []request // the last group's slice, for reuse
	closed  bool
	failure error // why nothing is accepted now
}

// groupLimit is the largest number of requests in one transaction.
const groupLimit = 512

func newWriter(b *Broker) *writer {
	w := &writer{b: b, wake: make(chan struct{}, 1), done: make(chan struct{}), tx: newTx(b.store.Load().write)}
	w.logPages = b.disk.logPages()
	w.nextCheckpoint = w.logPages
	w.tidyAt, w.tidyArmed = time.NewTimer(tidySoon), true
	return w
}

// submit hands a request over; settle will be called on it. It fails at once
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
	defer w.tidyAt.Stop()
	for {
		select {
		case <-w.wake:
		case <-w.tidyAt.C:
			w.maintain()
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

// commit brings a group to disk and settles it. On a full disk what takes up
// room is refused and the rest tried again alone; any other failure is fatal
// for the file: see recover.go.
func (w *writer) commit(group []request) {
	group = w.refuseOnLowDisk(group)
	if len(group) == 0 {
		return
	}
	err := w.try(group)
	if isFull(err) {
		rest := w.refuseGrowing(group, errFull)
		w.freeSpace()
		if err = nil; len(rest) > 0 {
			err = w.try(rest)
		}
		if group = rest; isFull(err) {
			finishAll(rest, errFull)
			return
		}
	}
	if err != nil {
		w.fail(group, err)
		return
	}
	finishAll(group, nil)
	clear(group)
	w.tidyLater()
	if err := w.checkpoint(); err != nil && !isFull(err) {
		w.fail(nil, err)
	}
}

// makeRoom gives up the reserved file, and lets the log start over: deletes
// then need no more room than it has.
func (w *writer) freeSpace() {
	w.b.disk.giveUpReserve()
	// Without room for that either, the deletes fail, and say so.
	_ = w.b.store.Load().restartLog()
}

// refuseGrowth refuses what takes up room while there is too little.
func (w *writer) refuseOnLowDisk(group []request) []request {
	for _, r := range group {
		if !r.grows() {
			continue
		}
		low, just := w.b.disk.low()
		if just {
			// While there is room for it; later deletes need none then.
			_ = w.b.store.Load().restartLog()
		}
		if low {
			return w.refuseGrowing(group, errFull)
		}
		break
	}
	return group
}

// settleGrowing refuses the requests of a group that take up room, and returns
// the others.
func (w *writer) refuseGrowing(group []request, err error) (rest []request) {
	for _, r := range group {
		if r.grows() {
			r.onCommit(err)
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
	durable := false
	for _, r := range group {
		durable = durable || r.durable()
	}
	err := w.b.store.Load().synchronous(durable)
	if err == nil {
		err = w.transact(group)
	}
	if err != nil {
		w.tx.undo()
	}
	w.tx.reset()
	return err
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

// errFull refuses what takes up room on a full disk.
var errFull = &queue.Error{
	Code: queue.CodeStorageFull,
	Message: "The disk that holds the queues has no room for more messages; receiving and deleting still work. Free " +
		"some space, or drain a queue.",
}
