package worker

import (
	"errors"
	"time"

	"tendril/queue"
)

// batcher collects the entries of one action and hands them out in tens.
type batcher struct {
	entries []pending
	due     time.Time // when the entries are sent even if they are fewer than ten; zero when empty
	hold    time.Time // no call before: the last one failed
	fails   int       // consecutive calls that failed
	calls   int       // calls under way
	serial  bool      // one call at a time, so that the entries arrive in order
	spare   []pending // for the next batch
}

// maxCalls is how many calls of one action may be under way at once, partCalls
// with how many a further one is made only if it carries ten: then entries that come
// meanwhile share the next, also where nothing lingers.
const (
	maxCalls  = 64
	partCalls = 4
)

// put adds an entry that may wait for others until due.
func (b *batcher) put(p pending, due time.Time) {
	if len(b.entries) == 0 || due.Before(b.due) {
		b.due = due
	}
	b.entries = append(b.entries, p)
}

// cut takes out the entries of one call, nil when it is not time for one. The
// caller counts the calls that it makes of them, and calls returned after each.
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

// returned notes the end of the call of a batch, which is used again; failed when none of
// its entries succeeded for a reason that may pass: then the next call waits.
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

// next returns when cut has to be called again, zero when nothing is here or
// only the return of a call can change anything.
func (b *batcher) next() time.Time {
	if len(b.entries) == 0 || b.full() {
		return time.Time{}
	}
	return later(b.due, b.hold)
}

// full reports whether no further call may begin before one returns. After a
// failed one they are made one by one, too.
func (b *batcher) full() bool {
	switch {
	case b.fails > 0, b.serial:
		return b.calls > 0
	case len(b.entries) < queue.MaxBatch:
		return b.calls >= partCalls
	}
	return b.calls >= maxCalls
}

// idle reports whether nothing is here or under way.
func (b *batcher) idle() bool { return len(b.entries) == 0 && b.calls == 0 }

// shift moves the times of all entries after a suspend.
func (b *batcher) shift(hidden time.Duration) {
	for i := range b.entries {
		b.entries[i].until = b.entries[i].until.Add(-hidden)
		b.entries[i].at = b.entries[i].at.Add(-hidden)
	}
}

// errorClass is what an error of the queue means for the entry that it belongs to.
type errorClass uint8

const (
	applied        errorClass = iota // no error
	uncertain                        // applied or not: no answer, or trouble over there
	tryLater                         // not applied
	refused                          // for good, and for every entry alike: an operator has to act
	invalidReceipt                   // the receipt is not, or no longer, good for this
)

// classify sorts an error of the queue.
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

// entryErr returns the error of one entry. A queue that answers with fewer
// results than entries says nothing of the rest.
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
