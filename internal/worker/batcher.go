package worker

import (
	"errors"
	"iter"
	"time"

	"tendril/queue"
)

type batcher struct {
	entries   []pending
	due       time.Time
	holdUntil time.Time // earliest next call after failures
	fails     int       // in a row
	calls     int
	serial    bool // one call at a time, to keep the order
	reusable  []pending
}

// With partCalls in flight, only full batches are sent, so that entries share calls even without lingering.
const (
	maxCalls  = 64
	partCalls = 4
)

func (b *batcher) put(p pending, due time.Time) {
	if len(b.entries) == 0 || due.Before(b.due) {
		b.due = due
	}
	b.entries = append(b.entries, p)
}

// batches yields the batches to send now. The caller must start each batch's call before it takes the next batch,
// because open calls limit it.
func (b *batcher) batches(now time.Time) iter.Seq[[]pending] {
	return func(yield func([]pending) bool) {
		for batch := b.nextBatch(now); batch != nil && yield(batch); batch = b.nextBatch(now) {
		}
	}
}

func (b *batcher) nextBatch(now time.Time) []pending {
	n := min(len(b.entries), queue.MaxBatch)
	if n == 0 || b.atCallLimit() || now.Before(b.holdUntil) {
		return nil
	}
	if n < queue.MaxBatch && now.Before(b.due) {
		return nil
	}

	batch := append(b.reusable, b.entries[:n]...)
	b.reusable = nil
	remaining := copy(b.entries, b.entries[n:])
	clear(b.entries[remaining:])
	b.entries = b.entries[:remaining]
	return batch
}

// callEnded keeps batch's memory for the next call. failed means that no entry has a final result.
func (b *batcher) callEnded(batch []pending, now time.Time, failed bool, random float64) {
	clear(batch[:cap(batch)])
	b.reusable = batch[:0]
	b.calls--

	if !failed {
		b.fails, b.holdUntil = 0, time.Time{}
		return
	}
	b.fails++
	b.holdUntil = now.Add(retryWait(b.fails, 100*time.Millisecond, 5*time.Second, random))
}

// next returns when to call nextBatch again, or zero to wait for another event.
func (b *batcher) next() time.Time {
	if len(b.entries) == 0 || b.atCallLimit() {
		return time.Time{}
	}
	return later(b.due, b.holdUntil)
}

func (b *batcher) atCallLimit() bool {
	switch {
	case b.fails > 0, b.serial:
		return b.calls > 0
	case len(b.entries) < queue.MaxBatch:
		return b.calls >= partCalls
	}
	return b.calls >= maxCalls
}

func (b *batcher) idle() bool { return len(b.entries) == 0 && b.calls == 0 }

func (b *batcher) moveBack(hidden time.Duration) {
	for i := range b.entries {
		b.entries[i].until = b.entries[i].until.Add(-hidden)
		b.entries[i].at = b.entries[i].at.Add(-hidden)
	}
}

type errorClass uint8

const (
	applied   errorClass = iota
	uncertain            // no response or a server error: the change may have been applied
	tryLater
	refused        // permanent until an operator acts
	invalidReceipt // invalid or outdated
)

func classify(err error) errorClass {
	if err == nil {
		return applied
	}

	var e *queue.Error
	if !errors.As(err, &e) {
		return uncertain
	}

	switch e.Code {
	case queue.CodeRequestThrottled, queue.CodeOverLimit:
		return tryLater
	case queue.CodeAccessDenied, queue.CodeQueueDoesNotExist, queue.CodeInvalidAddress, queue.CodeInvalidSecurity:
		return refused
	case queue.CodeReceiptHandleIsInvalid, queue.CodeMessageNotInflight, queue.CodeInvalidParameterValue,
		queue.CodeInvalidIDFormat:
		return invalidReceipt
	}

	return uncertain
}

func entryErr(errs []error, i int) error {
	switch {
	case errs == nil:
		return nil
	case i < len(errs):
		return errs[i]
	}
	return errNoResult
}

var (
	errNoResult   = errors.New("the queue returned no result for this entry")
	errDeleteLate = errors.New("the visibility timeout expired before the delete was confirmed")
	errChangeLate = errors.New("the visibility timeout expired before it was changed")
)
