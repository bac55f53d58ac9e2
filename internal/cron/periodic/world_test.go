package periodic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"tendril/queue"
)

// world is what the instances of a test share: who leads, the records, the
// queues and the time of day.
type world struct {
	mu      sync.Mutex
	term    int64
	leader  *node
	changed chan struct{}
	step    time.Duration // of the time of day
	high    time.Time     // the latest that it showed before it was set back

	since map[string]queue.TaskTimes
	// schedules are those by which the tasks were last accounted for.
	schedules map[string]string
	records   map[string]Claim
	rows      map[string]queue.Sent // runs of the embedded queue
	queues    map[string][]arrival
	dedup     map[string]arrival
	sent      int

	// chance of a fault and the longest delay of a call; rng decides.
	chance float64
	delay  time.Duration
	rng    *rand.Rand
}

// arrival is one message in a queue.
type arrival struct {
	id, task  string
	scheduled time.Time
	wall, at  time.Time
	// message is its own id, term that in which its sender last led, and lost tells
	// that the sender had no answer.
	message string
	term    int64
	lost    bool
}

func newWorld() *world {
	return &world{
		changed: make(chan struct{}), since: map[string]queue.TaskTimes{}, schedules: map[string]string{},
		records: map[string]Claim{},
		rows:    map[string]queue.Sent{},
		queues:  map[string][]arrival{}, dedup: map[string]arrival{}, rng: rand.New(rand.NewPCG(1, 2)),
	}
}

func (w *world) wall() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.step).Round(0)
}

// elect makes n the leader, in a new term; nil for nobody.
func (w *world) elect(n *node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n != nil {
		w.term++
	}
	w.leader = n
	close(w.changed)
	w.changed = make(chan struct{})
}

// node is one instance, as far as the world is concerned; it lives until dead.
type node struct {
	*world
	dead bool
	led  int64 // the last term in which it was told that it leads
}

func (n *node) Term() (int64, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	leads := n.leader == n && !n.dead
	if leads {
		n.led = n.term
	}
	return n.term, leads
}

func (n *node) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

func (n *node) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead = true
}

var errLost = errors.New("no answer")

// do makes a call: it takes a while, may or may not be applied, and may report
// an error in both cases.
func (n *node) do(ctx context.Context, apply func() error) error {
	n.mu.Lock()
	fault, before, after := n.rng.Float64() < n.chance, time.Duration(0), time.Duration(0)
	applied, known := n.rng.IntN(2) == 0, n.rng.IntN(2) == 0
	if n.delay > 0 {
		before, after = time.Duration(n.rng.Int64N(int64(n.delay))), time.Duration(n.rng.Int64N(int64(n.delay)))
	}
	n.mu.Unlock()
	pause(ctx, before)
	n.mu.Lock()
	switch {
	case n.dead:
		n.mu.Unlock()
		return errLost
	case fault && !applied && known:
		n.mu.Unlock()
		return fmt.Errorf("refused: %w", ErrNotSent)
	case fault && !applied:
		n.mu.Unlock()
		return errLost
	}
	err := apply()
	n.mu.Unlock()
	pause(ctx, after)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead || fault {
		return errLost
	}
	return err
}

// pause waits for d, or until ctx is done. There is no timer for no time: with the race
// detector those of one bubble that are due when they are made can crash the runtime
// (as in golang.org/issue/78156).
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (n *node) fence(term int64) error {
	if term != 0 && term != n.term {
		return queue.ErrStaleTerm
	}
	return nil
}

func (n *node) Since(ctx context.Context, term int64, starts map[string]Start) (since map[string]queue.TaskTimes,
	err error) {
	err = n.do(ctx, func() error {
		if err := n.fence(term); err != nil {
			return err
		}
		since = map[string]queue.TaskTimes{}
		for task, start := range starts {
			times, known := n.since[task]
			before := n.schedules[task]
			another := before != "" && before != start.Schedule
			if !known || another && times.UpTo.Before(start.At) {
				times.UpTo = start.At
			}
			if !known || another || start.At.Before(times.From) {
				times.From = start.At
			}
			n.schedules[task] = start.Schedule
			n.since[task], since[task] = times, times
		}
		return nil
	})
	return maps.Clone(since), err
}

func (n *node) account(f ScheduledRun) {
	if times := n.since[f.Task]; !f.Manual && times.UpTo.Before(f.ScheduledAt) {
		times.UpTo = f.ScheduledAt
		n.since[f.Task] = times
	}
}

func (n *node) push(f ScheduledRun, id string) queue.Sent {
	n.sent++
	sent := queue.Sent{ID: fmt.Sprintf("m%d", n.sent)}
	shown := time.Now().Add(n.step).Round(0)
	if n.high.After(shown) {
		shown = n.high
	}
	n.queues[f.Queue] = append(n.queues[f.Queue],
		arrival{id: id, task: f.Task, scheduled: f.ScheduledAt, wall: shown, at: time.Now(), message: sent.ID, term: n.led})
	return sent
}

// Claim, Mark and Send make a node the Store and the Sender of Claims.
func (n *node) Claim(ctx context.Context, term int64, f ScheduledRun, number int) (record Claim, err error) {
	err = n.do(ctx, func() error {
		if err := n.fence(term); err != nil {
			return err
		}
		record = n.records[f.ID]
		if record.Tries == number-1 && !record.Settled {
			record.Tries, record.Term = number, term
			n.records[f.ID] = record
		}
		return nil
	})
	return record, err
}

func (n *node) Mark(ctx context.Context, term int64, f ScheduledRun, messageID string) error {
	return n.do(ctx, func() error {
		if err := n.fence(term); err != nil {
			return err
		}
		if record := n.records[f.ID]; !record.Settled {
			record.Settled, record.MessageID = true, messageID
			n.records[f.ID] = record
		}
		n.account(f)
		return nil
	})
}

// Records is that of a Store.
func (n *node) Records(ctx context.Context, runs []ScheduledRun) (records map[string]Claim, err error) {
	err = n.do(ctx, func() error {
		records = map[string]Claim{}
		for i := range runs {
			if r, ok := n.records[runs[i].ID]; ok {
				records[runs[i].ID] = r
			}
		}
		return nil
	})
	return records, err
}

// Send is a queue that fences nothing; a FIFO queue knows what it has seen for
// five minutes.
func (n *node) Send(ctx context.Context, queueName string, m queue.Outgoing) (sent queue.Sent, err error) {
	run := queue.ParseRun(&queue.Message{Attributes: m.Attributes})
	task, at := run.Task, run.ScheduledAt
	err = n.do(ctx, func() error {
		if seen, ok := n.dedup[m.DedupID]; ok && FIFO(queueName) && time.Since(seen.at) < 5*time.Minute {
			sent = queue.Sent{ID: seen.id}
			return nil
		}
		sent = n.push(ScheduledRun{Task: task, ScheduledAt: at, Queue: queueName}, m.DedupID)
		n.dedup[m.DedupID] = arrival{id: sent.ID, at: time.Now()}
		return nil
	})
	if err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		for i := range n.queues[queueName] {
			if a := &n.queues[queueName][i]; a.message == sent.ID {
				a.lost = true
			}
		}
	}
	return sent, err
}

// embedded is a node as the Registry of an embedded queue: one transaction.
type embedded struct{ *node }

func (e embedded) Enqueue(ctx context.Context, term int64, f ScheduledRun) (answer EnqueueResult, err error) {
	err = e.do(ctx, func() error {
		if err := e.fence(term); err != nil {
			return err
		}
		sent, already := e.rows[f.ID]
		if !already {
			sent = e.push(f, f.ID)
			e.rows[f.ID] = sent
		}
		e.account(f)
		answer = EnqueueResult{Sent: sent, Already: already}
		return nil
	})
	return answer, err
}

func (e embedded) Skip(ctx context.Context, term int64, runs []ScheduledRun) (records map[string]Claim, err error) {
	err = e.do(ctx, func() error {
		if err := e.fence(term); err != nil {
			return err
		}
		records = map[string]Claim{}
		for _, f := range runs {
			if sent, ok := e.rows[f.ID]; ok {
				records[f.ID] = Claim{Tries: 1, Settled: true, MessageID: sent.ID}
			}
		}
		e.account(runs[len(runs)-1])
		return nil
	})
	return records, err
}
