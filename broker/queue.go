package broker

import (
	"sync"
	"time"

	"tendril/queue"
)

// liveQueue is one queue as memory holds it. The table is the truth; here is
// what makes receives quick: the next visible messages (the window), those in
// flight with their deadlines, those that came back.
type liveQueue struct {
	b       *Broker
	number  int64
	name    string
	arn     string
	created int64 // stamp

	// The writer's alone:
	disk    counters // as its transaction sees them
	removed bool     // deleted
	sweptTo int64    // the key up to which all messages came from other queues

	mu         sync.Mutex
	set        settings
	attributes map[string]string // as given
	tags       map[string]string
	modified   int64    // stamp
	purgedAt   int64    // stamp
	counters   counters // as committed
	deleted    bool

	order    deliveryOrder
	held     map[int64]*message // received before and still here, and those leaving
	inFlight deadlines
	delays   delays
	window   window
	waiters  waiters // waiting receives

	timer    *time.Timer // for the next end of a flight or a delay
	timerAt  int64       // its reading; 0 when it is not set
	cutoff   int64       // stamp: fresh messages sent before belong to the sweep
	sweep    *time.Timer // for the next look at retention
	sweepAt  int64       // its stamp; 0 when it is not set
	sweeping bool
	unstored []*message // received, not yet in receipts
	storing  *time.Timer
	attempts map[string]*attempt
}

func newLiveQueue(b *Broker, number int64, name string, set settings) *liveQueue {
	q := &liveQueue{b: b, number: number, name: name, arn: b.opts.arn(name), set: set, held: map[int64]*message{}}
	if set.fifo {
		q.order = newFIFO()
	} else {
		q.order = &standardOrder{}
	}
	return q
}

// low and high bound the keys of the queue's messages: low < key <= high.
func (q *liveQueue) low() int64  { return makeKey(q.number, q.counters.floor) }
func (q *liveQueue) high() int64 { return makeKey(q.number, maxSeq) }

// usable says why the queue cannot be used. The lock is held.
func (q *liveQueue) usable() error {
	if q.deleted {
		return errNoQueue()
	}
	return nil
}

func errNoQueue() error {
	return queue.Errorf(queue.CodeQueueDoesNotExist, "The specified queue does not exist.")
}

// newMessage makes the memory of a row. Content is kept while the cache has
// room. The lock is held.
func (q *liveQueue) newMessage(r *record, content bool) *message {
	m := &message{
		key: r.key, origin: r.originKey(), sent: r.sent, index: -1,
		arrived: int32(r.received), count: int32(r.received), first: r.first,
	}
	if r.due != 0 {
		m.due = max(1, q.b.clock.reading(r.due))
	}
	if f, ok := q.order.(*fifoOrder); ok {
		m.group = f.group(r.group)
	}
	if content && q.b.cache.reserve(r.footprint()) {
		m.content = r
	}
	return m
}

// drop forgets the cached content of a message.
func (q *liveQueue) drop(m *message) {
	if m.content != nil {
		q.b.cache.release(m.content.footprint())
		m.content = nil
	}
}

// land ends the flight of a message. The lock is held.
func (q *liveQueue) endFlight(m *message) {
	if m.inFlight {
		m.inFlight = false
		q.inFlight.remove(m)
	}
	if !m.leaving && !m.gone {
		q.order.requeue(m)
	}
}

// depart forgets a message that left the queue. The lock is held.
func (q *liveQueue) remove(m *message) {
	m.gone, m.leaving = true, false
	if m.inFlight {
		m.inFlight = false
		q.inFlight.remove(m)
	}
	delete(q.held, m.key)
	q.window.noteRemoved(m.key)
	q.drop(m)
	q.order.forget(m)
}

// stay takes back that a message was about to leave. The lock is held.
func (q *liveQueue) keep(m *message) {
	m.leaving = false
	if !m.inFlight {
		q.order.requeue(m)
	}
}

// onTimer makes visible what has come due.
func (q *liveQueue) onTimer() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timerAt = 0
	if q.deleted || q.b.closing.Load() {
		return
	}
	now := q.b.clock.now()
	for m := q.inFlight.first(); m != nil && m.until <= now; m = q.inFlight.first() {
		q.endFlight(m)
		q.waiters.wake(1)
	}
	if n := q.delays.expire(q.b.clock.floor(now)); n > 0 {
		q.delaysEnded(n, now)
	}
	q.arm()
}

// ended notes that n delays ended.
func (q *liveQueue) delaysEnded(n int, now int64) {
	if q.set.fifo {
		q.order.promote(now)
	} else {
		q.window.noteDue()
		q.fillIfLow()
	}
	q.waiters.wake(n)
}

// arm sets the timer for the next end of a flight or a delay. The lock is held.
func (q *liveQueue) arm() {
	var at int64
	if m := q.inFlight.first(); m != nil {
		at = m.until
	}
	if due, ok := q.delays.next(); ok {
		if r := max(1, q.b.clock.reading(due)); at == 0 || r < at {
			at = r
		}
	}
	if at == 0 || q.timerAt != 0 && q.timerAt <= at {
		return
	}
	q.timerAt = at
	wait := time.Duration(max(0, at-q.b.clock.now()))
	if q.timer == nil {
		q.timer = time.AfterFunc(wait, q.onTimer)
	} else {
		q.timer.Reset(wait)
	}
}

// stop ends the queue's timers. The lock is held.
func (q *liveQueue) stop() {
	for _, t := range []*time.Timer{q.timer, q.sweep, q.storing} {
		if t != nil {
			t.Stop()
		}
	}
	q.waiters.wakeAll()
}
