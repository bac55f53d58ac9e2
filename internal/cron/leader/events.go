package leader

import "time"

// Events contains an [Elector]'s listeners, which may be nil. They are called one at a time, in order, in a separate
// goroutine; when Lost is called, Term already returns false. At most 1000 events are queued; further ones are dropped.
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
	Name, Owner string // of the lease and its holder
	Term        int64
}

// Failure reports a failed call to the store, or a suspension during a call. While calls fail, this instance cannot
// become the leader.
type Failure struct {
	Name        string
	Err         error
	Consecutive int
	Retry       time.Duration // until the next try
}

const maxQueuedEvents = 1000

type dispatcher struct {
	calls chan func()
	ended chan struct{}
	done  chan struct{}
}

func newDispatcher() *dispatcher {
	return &dispatcher{calls: make(chan func(), maxQueuedEvents), ended: make(chan struct{}), done: make(chan struct{})}
}

func (d *dispatcher) dispatch(f func()) {
	select {
	case d.calls <- f:
	default:
	}
}

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

func (d *dispatcher) stop(limit time.Duration) {
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
