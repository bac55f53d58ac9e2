package worker

import (
	"context"
	"sync"
	"time"

	"tendril/queue"
)

// Queue is what the worker needs of a queue. All methods must be safe for
// concurrent use and return soon after their context is done.
type Queue interface {
	// Receive returns up to req.Max messages, after waiting up to req.Wait for
	// a first one. It must not repeat a receive whose answer was lost: each
	// receive counts against its messages.
	Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error)
	// Delete deletes the messages of up to [queue.MaxBatch] receipts. It
	// returns nil when all were, or one error for each (nil for those deleted).
	Delete(ctx context.Context, receipts []string) []error
	// Expire is Delete of messages past their retention. A queue that keeps an
	// account does not count them as done.
	Expire(ctx context.Context, receipts []string) []error
	// ChangeVisibility applies up to [queue.MaxBatch] changes, in order; its
	// result is that of Delete.
	ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error
}

// Deliverer hands messages to the app. Both methods must be safe for
// concurrent use and return soon after their context is done.
type Deliverer interface {
	// Deliver hands over one message, at most once, and says how that ended. It
	// enforces its own time limits; the message stays hidden until it returns.
	// m must not be kept or changed. With [queue.Postponed] it vouches that it
	// tried nothing: then it is called again for the same receive.
	Deliver(ctx context.Context, m *queue.Message) queue.Result
	// Probe returns nil when the app accepts connections.
	Probe(ctx context.Context) error
}

// Worker polls one queue, delivers each message and settles it. Make one with
// [New] and run it once with [Worker.Run]; every method may be called at any
// time from any goroutine.
type Worker struct {
	queue    Queue
	app      Deliverer
	batchApp BatchDeliverer // nil when messages travel one by one
	pool     *Pool          // nil for a worker of its own
	opts     Options
	events   *Events
	rhythm   time.Duration // of the keeper's rounds
	callCtx  context.Context
	endCall  context.CancelFunc
	workCtx  context.Context // of the deliveries; set by Run
	wake     chan struct{}   // asks the keeper for an early round
	drained  chan struct{}   // closed when a drain is over
	tasks    sync.WaitGroup  // every goroutine of Run

	// mu guards everything below; it is the pool's, if there is one. It is never
	// held during a call of the queue, the app or a listener.
	mu *desk

	phase phase
	gate  gate
	clock clock
	pace  pace
	polls polls
	share share // of the pool

	brake    *brake    // the limiter; nil for none
	lookAt   time.Time // when to ask the limiter for room again
	throttle throttle
	batch    Batch
	scratch  []*held // of gather

	held      map[string]*held // by message id
	groups    map[string]*group
	ready     lineup
	aside     aside
	returning []order // give-backs that wait for the end of the open polls

	limit       int // deliveries that may run at once now
	turning     int // FIFO groups between two messages
	inWork      int
	unconfirmed int     // messages in stage deleting
	parked      []*slot // idle slots; the last one parked is the next to work

	deletes, changes box
	sleepUntil       time.Time // when the keeper wakes by itself
	nextTend         time.Time // when it looks after what is held
	done             *memory[struct{}]
	unposted         *memory[int]
	status           tally
	turns            recent // messages begun, with their wait
}

// phase is how far Run is.
type phase uint8

const (
	notStarted phase = iota
	running
	draining
	aborting
	stopped
)

// New returns a worker that takes messages from q and hands them to d. It does
// nothing until [Worker.Run]. opts may be nil.
func New(q Queue, d Deliverer, opts *Options) *Worker {
	o := opts.settled()
	w := &Worker{
		queue: q, app: d, opts: o, events: o.Events, mu: &desk{}, batch: Batch{Size: 1},
		rhythm:  clamp(o.VisibilityTimeout/16, 50*time.Millisecond, time.Second),
		wake:    make(chan struct{}, 1),
		drained: make(chan struct{}),
		held:    make(map[string]*held), groups: make(map[string]*group),
		limit: o.Concurrency,
		polls: polls{want: 1, open: make(map[*openPoll]struct{})},
		done:  newMemory[struct{}](remembered), unposted: newMemory[int](remembered),
	}
	w.clock.rhythm = w.rhythm
	w.gate.close(appDown, "the app has not answered yet", time.Now())
	w.callCtx, w.endCall = context.WithCancel(context.Background())
	if b, ok := d.(BatchDeliverer); ok && o.Batch.Size > 1 {
		w.batchApp, w.batch = b, o.Batch
	}
	if o.Pool != nil {
		w.pool, w.mu, w.brake = o.Pool, &o.Pool.mu, o.Pool.brake
	}
	if o.Limiter != nil {
		w.brake = newBrake(o.Limiter, w.mu, o.Events.Limited)
	}
	if o.Pool != nil {
		o.Pool.join(w)
	}
	return w
}

// note keeps a listener's call for after the lock.
func (w *Worker) note(f func()) { w.mu.note(f) }

// unlock releases the lock and then calls the listeners that were noted.
func (w *Worker) unlock() { w.mu.unlock() }
