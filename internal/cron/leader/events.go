package leader

import "time"

// Events are the listeners of an [Elector]. Every field may be nil. They are
// called one at a time and in order, from a goroutine of their own: by the time
// Lost is called, Term has been false already, and a listener that takes long
// delays the later events and nothing else. At most 1000 events wait; what
// comes on top is dropped.
type Events struct {
	// Elected: this instance is the leader, in a new term.
	Elected func(Elected)
	// Lost: this instance is no longer the leader.
	Lost func(Lost)
	// Following: another instance holds the lease; called when that changes.
	Following func(Following)
	// Failed: a call of the store failed.
	Failed func(Failure)
}

// Elected reports a new term of this instance.
type Elected struct {
	Name string // the lease's
	Term int64
}

// Lost reports the end of a term of this instance.
type Lost struct {
	Name   string // the lease's
	Term   int64
	Reason string // in a few words
}

// Following names the leader if it is another instance.
type Following struct {
	// Name is the lease's name; Owner is its holder.
	Name, Owner string
	Term        int64
}

// Failure is a failed call of the store. As long as calls fail,
// there is no new leader.
type Failure struct {
	Name string // the lease's
	Err  error  // the store's
	// Consecutive counts the failures since the last success, this one included.
	Consecutive int
	// Retry is after how long the store is asked again.
	Retry time.Duration
}

// maxWaiting is how many events wait for a listener that takes long.
const maxWaiting = 1000

// dispatcher calls listeners in order, one at a time, without blocking its callers.
type dispatcher struct {
	calls chan func()
	ended chan struct{} // closed by end
	done  chan struct{} // closed when run has returned
}

func newDispatcher() *dispatcher {
	return &dispatcher{calls: make(chan func(), maxWaiting), ended: make(chan struct{}), done: make(chan struct{})}
}

// dispatch has f called after the calls dispatched before it.
func (d *dispatcher) dispatch(f func()) {
	select {
	case d.calls <- f:
	default:
	}
}

// run makes the dispatched calls until end, including those waiting by then.
func (d *dispatcher) run() {
	defer close(d.done)
	for {
		select {
		case call := <-d.calls:
			call()
		case <-d.ended:
			if len(d.calls) == 0 {
				return
			}
		}
	}
}

// end lets run return, and waits for it up to a limit.
func (d *dispatcher) end(limit time.Duration) {
	close(d.ended)
	select {
	case <-d.done:
	case <-time.After(limit):
	}
}

func call[E any](listener func(E), event E) {
	if listener != nil {
		listener(event)
	}
}
