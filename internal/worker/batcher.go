package worker

import (
	"errors"
	"time"

	"tendril/queue"
)

// batcher collects entries for calls with up to ten of them.
type batcher struct {
	entries []pending
	due     time.Time // when to send an incomplete batch; zero if empty
	hold    time.Time // no call before this time, after a failed one
	fails   int       // consecutive failed calls
	calls   int       // in flight
	serial  bool      // one call at a time, to keep entries in order
	spare   []pending // buffer for the next batch
}

// maxCalls limits the calls in flight. From partCalls on, only full batches are sent, so that entries share calls
// even without lingering.
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

// cut removes and returns the entries of one call, or nil if none is due. The caller increments calls.
func (b *batcher) cut(now time.Time) []pending {
	n := len(b.entries)
	if n == 0 || b.full() || now.Before(b.hold) || (n < queue.MaxBatch && now.Before(b.due)) {
		return nil
	}
	n = min(n, queue.MaxBatch)
	batch := append(b.spare, b.entries[:n]...)
	b.spare = nil
	rest := copy(b.entries, b.entries[n:])
	clear(b.entries[rest:])
	b.entries = b.entries[:rest]
	return batch
}

// returned records the end of a call. If failed, all entries failed for a temporary reason, and the next call is
// delayed.
func (b *batcher) returned(batch []pending, now time.Time, failed bool, random float64) {
	clear(batch[:cap(batch)])
	b.spare = batch[:0]
	b.calls--
	if !failed {
		b.fails, b.hold = 0, time.Time{}
		return
	}
	b.fails++
	b.hold = now.Add(retryWait(b.fails, 100*time.Millisecond, 5*time.Second, random))
}

// next returns when to call cut again; zero if that depends on other events.
func (b *batcher) next() time.Time {
	if len(b.entries) == 0 || b.full() {
		return time.Time{}
	}
	return later(b.due, b.hold)
}

// full reports whether a call must return before the next one. After a failure, calls are sequential.
func (b *batcher) full() bool {
	switch {
	case b.fails > 0, b.serial:
		return b.calls > 0
	case len(b.entries) < queue.MaxBatch:
		return b.calls >= partCalls
	}
	return b.calls >= maxCalls
}

func (b *batcher) idle() bool { return len(b.entries) == 0 && b.calls == 0 }

func (b *batcher) shift(hidden time.Duration) {
	for i := range b.entries {
		b.entries[i].until = b.entries[i].until.Add(-hidden)
		b.entries[i].at = b.entries[i].at.Add(-hidden)
	}
}

type errorClass uint8

const (
	applied   errorClass = iota
	uncertain            // perhaps applied: no answer, or a server error
	tryLater
	refused        // permanently, until an operator acts
	invalidReceipt // the receipt is invalid or outdated
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

// entryErr returns the error of one entry. Missing results are errors.
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
	errNoResult       = errors.New("the queue gave no result for this entry")
	errVisibilityOver = errors.New("the visibility timeout expired before the delete was confirmed")
)
