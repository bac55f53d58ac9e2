package leader

import "time"

// Events contains an [Elector]'s listeners. Each may be nil. They are called one at a time and in order, in a
// separate goroutine: when Lost is called, Term is no longer ok. At most 1000 events are queued; the rest are
// dropped.
type Events struct {
	// this instance leads, in a new term
	Elected func(Elected)
	// this instance no longer leads
	Lost func(Lost)
	// another instance leads
	Following func(Following)
	// a call of the store failed
	Failed func(Failure)
}

// Elected reports a new term of this instance.
type Elected struct {
	Name string
	Term int64
}

// Lost reports the end of a term of this instance.
type Lost struct {
	Name   string
	Term   int64
	Reason string
}

// Following reports that another instance leads.
type Following struct {
	// Name is the lease's name, Owner its holder.
	Name, Owner string
	Term        int64
}

// Failure reports a failed call of the store. While calls fail, there is no new leader.
type Failure struct {
	Name string
	Err  error
	// failures since the last success, from 1
	Consecutive int
	// time until the next try
	Retry time.Duration
}

// events queued for a slow listener
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

// dispatch drops f if the queue is full.
func (d *dispatcher) dispatch(f func()) {
	select {
	case d.calls <- f:
	default:
	}
}

// run makes the queued calls until end, and those still queued then.
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

// end stops run and waits for it up to a limit.
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
