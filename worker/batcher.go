package worker

import (
	"errors"
	"time"

	"tendril/queue"
)

// kind says what an order is for.
type kind uint8

const (
	removal  kind = iota // delete a message
	extend               // hide a message in work for longer
	delay                // hide a failed message until its next attempt
	giveBack             // make an unposted message visible at once
)

// String returns the kind's name, as [ChangeFailed] shows it.
func (k kind) String() string {
	return [...]string{"delete", "extend", "retry", "give back"}[k]
}

// order is one entry of a delete or of a change of visibility, on its way to
// the queue.
type order struct {
	h          *held
	kind       kind
	receipt    string
	visibility time.Duration // of a change; worked out when it is sent, unless it is an extension
	at         time.Time     // when a delayed or given back message is visible again; zero for at once
	// until is when the order is no longer worth sending.
	until time.Time
	tries int
}

// box collects orders of one action and hands them out in tens.
type box struct {
	orders []order
	due    time.Time // when what is here goes even if it is not ten; zero when empty
	hold   time.Time // no call before: the last one failed
	fails  int       // calls that failed in a row
	calls  int       // calls under way
}

// maxCalls is how many calls of one action may be under way at once, partCalls
// with how many a further one goes only if it carries ten: then those that come
// meanwhile share the next, also where nothing lingers.
const (
	maxCalls  = 64
	partCalls = 4
)

// put adds an order that may wait for company until due.
func (b *box) put(o order, due time.Time) {
	if len(b.orders) == 0 || due.Before(b.due) {
		b.due = due
	}
	b.orders = append(b.orders, o)
}

// cut takes out the orders of one call, nil when it is not time for one. The
// caller makes the call and then calls returned.
func (b *box) cut(now time.Time) []order {
	n := len(b.orders)
	if n == 0 || b.full() || now.Before(b.hold) || (n < queue.MaxBatch && now.Before(b.due)) {
		return nil
	}
	n = min(n, queue.MaxBatch)
	batch := append(make([]order, 0, n), b.orders[:n]...)
	rest := copy(b.orders, b.orders[n:])
	clear(b.orders[rest:])
	b.orders = b.orders[:rest]
	b.calls++
	return batch
}

// returned notes the end of a call; failed when none of its entries succeeded
// for a reason that may pass: then the box rests.
func (b *box) returned(now time.Time, failed bool, random float64) {
	b.calls--
	if !failed {
		b.fails, b.hold = 0, time.Time{}
		return
	}
	b.fails++
	b.hold = now.Add(again(b.fails, 100*time.Millisecond, 5*time.Second, random))
}

// next returns when cut has to be called again, zero when nothing is here or
// only the return of a call can change anything.
func (b *box) next() time.Time {
	if len(b.orders) == 0 || b.full() {
		return time.Time{}
	}
	if b.due.Before(b.hold) {
		return b.hold
	}
	return b.due
}

// full reports whether no further call may begin before one returns. After a
// failed one they go one by one.
func (b *box) full() bool {
	switch {
	case b.fails > 0:
		return b.calls > 0
	case len(b.orders) < queue.MaxBatch:
		return b.calls >= partCalls
	}
	return b.calls >= maxCalls
}

// idle reports whether nothing is here or under way.
func (b *box) idle() bool { return len(b.orders) == 0 && b.calls == 0 }

// verdict is what an error of the queue means for the entry that it belongs to.
type verdict uint8

const (
	fine      verdict = iota
	unknown           // it may have been applied or not: no answer, trouble over there
	throttled         // not applied, try later
	refused           // for good, and for every entry alike: somebody has to act
	worthless         // the receipt is not, or no longer, good for this
)

// judge sorts an error of the queue.
func judge(err error) verdict {
	if err == nil {
		return fine
	}
	var e *queue.Error
	if !errors.As(err, &e) {
		return unknown
	}
	switch e.Code {
	case queue.CodeRequestThrottled, queue.CodeOverLimit:
		return throttled
	case queue.CodeAccessDenied, queue.CodeQueueDoesNotExist, queue.CodeInvalidAddress, queue.CodeInvalidSecurity:
		return refused
	case queue.CodeReceiptHandleIsInvalid, queue.CodeMessageNotInflight, queue.CodeInvalidParameterValue,
		queue.CodeInvalidIDFormat:
		return worthless
	}
	return unknown
}

// entryErr returns the error of one entry. A queue that answers with fewer
// results than entries vouches for none of the rest.
func entryErr(errs []error, i int) error {
	switch {
	case errs == nil:
		return nil
	case i < len(errs):
		return errs[i]
	}
	return errNoResult
}

var errNoResult = errors.New("the queue gave no result for this entry")
