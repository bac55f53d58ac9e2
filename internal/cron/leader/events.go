package leader

import "time"

// Events contains the listeners of an [Elector]. Each may be nil. They are called one at a time and in order, in a
// separate goroutine: when Lost is called, Term is no longer ok. A slow listener delays only later events. At most
// 1000 events are queued; the rest are dropped.
type Events struct {
	// Elected is called when this instance becomes the leader, in a new term.
	Elected func(Elected)
	// Lost is called when this instance is no longer the leader.
	Lost func(Lost)
	// Following is called when another instance becomes the leader.
	Following func(Following)
	// Failed is called when a call of the store fails.
	Failed func(Failure)
}

// Elected reports a new term of this instance.
type Elected struct {
	Name string // of the lease
	Term int64
}

// Lost reports the end of a term of this instance.
type Lost struct {
	Name   string // of the lease
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
	Name string // of the lease
	Err  error  // from the store
	// Consecutive is the number of failures since the last success, from 1.
	Consecutive int
	// Retry is the time until the next try.
	Retry time.Duration
}

// maxWaiting is the number of events queued for a slow listener.
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
