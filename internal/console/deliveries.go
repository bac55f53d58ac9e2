package console

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"tendril/queue"
)

// DefaultDeliveries is how many deliveries are remembered unless told.
const DefaultDeliveries = 10_000

// Delivery is one attempt at handing a message to the app.
type Delivery struct {
	MessageID string `json:"message_id"`
	Queue     string `json:"queue"`
	// Outcome is "done", "failed" or "unreached"; [InWork] while the app has not
	// answered yet.
	Outcome string `json:"outcome"`
	Status  int    `json:"status,omitempty"` // of HTTP; 0 without an answer
	Reason  string `json:"reason,omitempty"` // why it is not done, in a few words
	Answer  string `json:"answer,omitempty"` // the begin of one that is not a success
	// Attempt counts deliveries of the message by this process, ReceiveCount
	// the receives as the queue counts them.
	Attempt      int `json:"attempt,omitempty"`
	ReceiveCount int `json:"receive_count,omitempty"`
	// DurationMS is how long the app took, WaitMS the time from the send to the
	// start of this attempt, in milliseconds.
	DurationMS int64     `json:"duration_ms"`
	WaitMS     int64     `json:"wait_ms"`
	At         time.Time `json:"at"` // when the attempt ended
	// RetryAt is when the message becomes visible again, where that is known;
	// DeadLetterQueue where it goes instead, after its last attempt.
	RetryAt         time.Time `json:"retry_at,omitzero"`
	DeadLetterQueue string    `json:"dead_letter_queue,omitempty"`
}

// deliveryList is the answer of /api/v1/deliveries.
type deliveryList struct {
	Deliveries []Delivery `json:"deliveries"`
}

// InWork is the outcome of an attempt that has not ended. Its DurationMS is how long
// it has taken so far.
const InWork = "in work"

// Tried reports whether the delivery was an attempt: not where nothing reached the app,
// and the message comes again as soon as the app is ready.
func (d *Delivery) Tried() bool {
	return d.Outcome != queue.Unreached.String() || !d.RetryAt.IsZero()
}

// Done reports whether the app answered with success.
func (d *Delivery) Done() bool { return d.Outcome == queue.Done.String() }

// Problem is a group of failed deliveries of one queue with one reason.
type Problem struct {
	Queue  string `json:"queue"`
	Reason string `json:"reason"`
	// Count is how many of the remembered deliveries failed so, between First
	// and Last; LastMessageID is the message of the last one.
	Count         int       `json:"count"`
	First         time.Time `json:"first"`
	Last          time.Time `json:"last"`
	LastMessageID string    `json:"last_message_id"`
}

// Deliveries remembers the most recent deliveries, and lets one wait for that
// of a message. All methods are safe for concurrent use. The zero value
// remembers [DefaultDeliveries]; it holds no memory before the first one.
type Deliveries struct {
	mu      sync.Mutex
	size    int
	ring    []remembered
	next    int           // where the ring is written next once it is full
	total   int           // deliveries that were ever recorded
	arrived chan struct{} // closes at the next delivery; nil while nobody waits
	// problems are the groups of the failures in the ring, until one comes or goes: then stale is true.
	problems  []Problem
	stale     bool
	exchanges exchanges
}

// remembered is a delivery in memory. There are thousands, and most succeed: what only the others have is kept apart.
type remembered struct {
	messageID, queue, outcome     string
	at                            time.Time
	durationMS, waitMS            int64
	status, attempt, receiveCount int32
	failure                       *failure // nil if nothing is known of one
}

// failure is why a delivery did not succeed, and what becomes of its message.
type failure struct {
	reason, answer  string
	retryAt         time.Time
	deadLetterQueue string
}

func remember(d *Delivery) remembered {
	r := remembered{d.MessageID, d.Queue, d.Outcome, d.At, d.DurationMS, d.WaitMS,
		int32(d.Status), int32(d.Attempt), int32(d.ReceiveCount), nil}
	if f := (failure{d.Reason, d.Answer, d.RetryAt, d.DeadLetterQueue}); f != (failure{}) {
		r.failure = &f
	}
	return r
}

func (r *remembered) delivery() Delivery {
	d := Delivery{MessageID: r.messageID, Queue: r.queue, Outcome: r.outcome, At: r.at, DurationMS: r.durationMS,
		WaitMS: r.waitMS, Status: int(r.status), Attempt: int(r.attempt), ReceiveCount: int(r.receiveCount)}
	if f := r.failure; f != nil {
		d.Reason, d.Answer, d.RetryAt, d.DeadLetterQueue = f.reason, f.answer, f.retryAt, f.deadLetterQueue
	}
	return d
}

// NewDeliveries returns a memory of the size most recent deliveries;
// [DefaultDeliveries] when size is less than 1.
func NewDeliveries(size int) *Deliveries { return &Deliveries{size: size} }

// Record remembers one delivery, forgets the oldest where the memory is full,
// and wakes those who wait. It never blocks.
func (ds *Deliveries) Record(d Delivery) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.ring == nil {
		ds.size = cmp.Or(max(ds.size, 0), DefaultDeliveries)
	}
	at := ds.next
	ds.stale = ds.stale || !d.Done()
	if len(ds.ring) < ds.size {
		ds.ring = append(ds.ring, remember(&d))
	} else {
		old := &ds.ring[at]
		ds.stale = ds.stale || old.outcome != queue.Done.String()
		*old = remember(&d)
	}
	ds.next = (at + 1) % ds.size
	ds.total++
	if ds.arrived != nil {
		close(ds.arrived)
		ds.arrived = nil
	}
}

// Wait returns the most recent delivery of a message, waiting for the first
// one that is an attempt where none is remembered. When ctx is done first it returns
// the most recent one that is not an attempt, or ctx's error.
func (ds *Deliveries) Wait(ctx context.Context, id string) (Delivery, error) {
	var d Delivery
	ok, looked := false, 0
	for {
		ds.mu.Lock()
		// Only those that came since the last look: each delivery of any message wakes us.
		for i := range min(ds.total-looked, len(ds.ring)) {
			if newest := ds.before(i); newest.messageID == id {
				d, ok = newest.delivery(), true
				break
			}
		}
		looked = ds.total
		if ds.arrived == nil {
			ds.arrived = make(chan struct{})
		}
		arrived := ds.arrived
		ds.mu.Unlock()
		if ok && d.Tried() {
			return d, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			if ok {
				return d, nil
			}
			return Delivery{}, ctx.Err()
		}
	}
}

// before returns the most recent delivery but i.
func (ds *Deliveries) before(i int) *remembered {
	return &ds.ring[(ds.next-1-i+2*len(ds.ring))%len(ds.ring)]
}

// Recent returns up to limit deliveries, the most recent first; all of them
// when limit is less than 1.
func (ds *Deliveries) Recent(limit int) []Delivery {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	n := len(ds.ring)
	if limit >= 1 {
		n = min(n, limit)
	}
	out := make([]Delivery, 0, n)
	for i := range n {
		out = append(out, ds.before(i).delivery())
	}
	return out
}

// Problems groups the failures among the remembered deliveries by queue and
// reason, the group that failed last first.
func (ds *Deliveries) Problems() []Problem {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.stale {
		ds.problems, ds.stale = ds.group(), false
	}
	return slices.Clone(ds.problems)
}

// group groups the failures in the ring, without a copy of it: the lock is held, and deliveries wait for it.
func (ds *Deliveries) group() []Problem {
	type key struct{ queue, reason string }
	groups := map[key]*Problem{}
	for i := range ds.ring {
		d := ds.before(i).delivery()
		if d.Done() {
			continue
		}
		p := groups[key{d.Queue, d.Reason}]
		if p == nil {
			p = &Problem{Queue: d.Queue, Reason: d.Reason, Last: d.At, LastMessageID: d.MessageID}
			groups[key{d.Queue, d.Reason}] = p
		}
		p.Count++
		p.First = d.At
	}
	problems := make([]Problem, 0, len(groups))
	for _, p := range groups {
		problems = append(problems, *p)
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Reason, b.Reason))
	})
	return problems
}
