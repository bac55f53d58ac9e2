package leader

import "time"

// Events contains an [Elector]'s listeners. Each may be nil. They are called one at a time and in order, in a
// separate goroutine: when Lost is called, Term already returns false. Up to 1000 events are queued; further ones are
// dropped.
type Events struct {
	Elected   func(Elected)
	Lost      func(Lost)
	Following func(Following)
	Failed    func(Failure)
}

// Elected reports the start of this instance's term.
type Elected struct {
	Name string
	Term int64
}

// Lost reports the end of this instance's term.
type Lost struct {
	Name   string
	Term   int64
	Reason string
}

// Following reports that another instance leads.
type Following struct {
	// Name is the name of the lease, Owner its holder.
	Name, Owner string
	Term        int64
}

// Failure reports a failed call to the store. While calls fail, no new leader is elected.
type Failure struct {
	Name string
	Err  error
	// Consecutive counts failures since the last success.
	Consecutive int
	// Retry is the time until the next try.
	Retry time.Duration
}

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

// dispatch queues f, or drops it if the queue is full.
func (d *dispatcher) dispatch(f func()) {
	select {
	case d.calls <- f:
	default:
	}
}

// run calls the queued functions, until end and the queue is empty.
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

// end waits for run, but no longer than limit.
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
