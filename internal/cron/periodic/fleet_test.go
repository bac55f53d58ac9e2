package periodic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"tendril/internal/registry"
	"tendril/queue"
)

type fleet struct {
	mu      sync.Mutex
	term    int64
	leader  *node
	changed chan struct{}
	step    time.Duration
	high    time.Time

	store  *registry.Memory
	queues map[string][]arrival
	dedup  map[string]arrival
	sent   int

	// chance is the probability of a fault, and delay the longest delay of a call.
	chance float64
	delay  time.Duration
	rng    *rand.Rand
}

type arrival struct {
	id, task  string
	scheduled time.Time
	wall, at  time.Time
	message   string
	term      int64
	lost      bool // the sender got no response
}

func newFleet() *fleet {
	return &fleet{
		changed: make(chan struct{}), store: registry.NewMemory(),
		queues: map[string][]arrival{}, dedup: map[string]arrival{}, rng: rand.New(rand.NewPCG(1, 2)),
	}
}

func (w *fleet) wall() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.step).Round(0)
}

func (w *fleet) elect(n *node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n != nil {
		w.term++
	}
	w.leader = n
	close(w.changed)
	w.changed = make(chan struct{})
}

type node struct {
	*fleet
	dead bool
	led  int64
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
		return fmt.Errorf("refused: %w", registry.ErrNotSent)
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

// pause creates no timers that are already due: with the race detector, they can crash the runtime
// (golang.org/issue/78156).
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

var scope = registry.Scope{Lease: "leader"}

func (n *node) fence(fence registry.Fence) error {
	if fence.Term != 0 && fence.Term != n.term {
		return queue.ErrStaleTerm
	}
	return nil
}

func (n *node) Read(ctx context.Context, kind registry.Kind, keys ...string) (records []registry.Record, err error) {
	err = n.do(ctx, func() (err error) {
		records, err = n.store.Read(context.Background(), kind, keys...)
		return err
	})
	return records, err
}

func (n *node) Swap(ctx context.Context, fence registry.Fence, changes ...registry.Change) (stored []registry.Record,
	err error) {
	err = n.do(ctx, func() (err error) {
		if err := n.fence(fence); err != nil {
			return err
		}
		stored, err = n.store.Swap(context.Background(), registry.Fence{}, changes...)
		return err
	})
	return stored, err
}

func (w *fleet) stored(kind registry.Kind, key string) registry.Record {
	records, _ := w.store.Read(context.Background(), kind, key)
	return records[0]
}

func (n *node) push(task string, at time.Time, queueName, id string) queue.Sent {
	n.sent++
	sent := queue.Sent{ID: fmt.Sprintf("m%d", n.sent)}
	shown := time.Now().Add(n.step).Round(0)
	if n.high.After(shown) {
		shown = n.high
	}
	n.queues[queueName] = append(n.queues[queueName],
		arrival{id: id, task: task, scheduled: at, wall: shown, at: time.Now(), message: sent.ID, term: n.led})
	return sent
}

// Send deduplicates for five minutes on FIFO queues.
func (n *node) Send(ctx context.Context, queueName string, m queue.Outgoing) (sent queue.Sent, err error) {
	run := queue.ParseRun(&queue.Message{Attributes: m.Attributes})
	task, at := run.Task, run.ScheduledAt
	err = n.do(ctx, func() error {
		if seen, ok := n.dedup[m.DedupID]; ok && queue.IsFIFO(queueName) && time.Since(seen.at) < 5*time.Minute {
			sent = queue.Sent{ID: seen.id}
			return nil
		}
		sent = n.push(task, at, queueName, m.DedupID)
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

type embedded struct{ *node }

func (e embedded) Enqueue(ctx context.Context, fence registry.Fence, queueName string, m queue.Outgoing,
	changes ...registry.Change) (sent queue.Sent, conflict []registry.Record, err error) {
	err = e.do(ctx, func() error {
		if err := e.fence(fence); err != nil {
			return err
		}
		var stored []registry.Record
		same := true
		for _, c := range changes {
			record := e.stored(c.Old.Kind, c.Old.Key)
			stored = append(stored, record)
			same = same && registry.Same(record, c.Old)
		}
		if !same {
			conflict = stored
			return nil
		}
		run := queue.ParseRun(&queue.Message{Attributes: m.Attributes})
		sent = e.push(run.Task, run.ScheduledAt, queueName, changes[0].Next.Key)
		changes[0].Next = changes[0].Next.With(registry.Fields{"message": sent.ID})
		_, err := e.store.Swap(context.Background(), registry.Fence{}, changes...)
		return err
	})
	return sent, conflict, err
}

func runsOf(n *node) *registry.Runs { return registry.NewRuns(embedded{n}, scope) }
