package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"tendril/queue"
)

func sendMany(t testing.TB, q *Queue, n, groups int) {
	t.Helper()
	var batch []queue.Outgoing
	for i := range n {
		o := queue.Outgoing{Body: fmt.Sprint(i)}
		if groups > 0 {
			o.GroupID, o.DedupID = fmt.Sprint("g", i%groups), o.Body
		}
		if batch = append(batch, o); len(batch) == queue.MaxBatch || i == n-1 {
			send(t, q, batch...)
			batch = batch[:0]
		}
	}
}

func TestDeepStandard(t *testing.T) {
	t.Parallel()
	const n = 12_000
	b := openTest(t, nil)
	q := create(t, b, "work", nil)
	sendMany(t, q, n, 0)
	b = reopen(t, b)
	q = b.Queue("work")
	var mu sync.Mutex
	seen := map[string]int{}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				msgs, err := q.Receive(context.Background(), queue.ReceiveRequest{Max: 10})
				if err != nil || len(msgs) == 0 {
					return
				}
				mu.Lock()
				for _, m := range msgs {
					seen[m.Body]++
				}
				mu.Unlock()
				if errs := q.Delete(context.Background(), receipts(msgs)); errs != nil {
					t.Error(errs)
				}
			}
		})
	}
	group.Wait()
	if len(seen) != n {
		t.Errorf("%d distinct messages received, want %d", len(seen), n)
	}
	for text, times := range seen {
		if times != 1 {
			t.Errorf("%s received %d times", text, times)
		}
	}
	if used := b.memory.content.Load(); used != 0 {
		t.Errorf("%d bytes of contents are counted in memory, and there are none", used)
	}
	if n := b.memory.fresh.Load(); n != 0 {
		t.Errorf("%d messages are counted in the window, and there are none", n)
	}
}

func TestDeepFIFO(t *testing.T) {
	t.Parallel()
	const n, groups = 6_000, 7
	b := openTest(t, limited(func(l *memoryLimits) { l.fifo = 1000 }))
	q := create(t, b, "work.fifo", map[string]string{"FifoQueue": "true"})
	sendMany(t, q, n, groups)
	next := map[string]int{}
	for got := 0; got < n; {
		msgs := take(t, q, 10)
		if len(msgs) == 0 {
			t.Fatalf("nothing after %d messages", got)
		}
		for _, m := range msgs {
			var i int
			fmt.Sscan(m.Body, &i)
			if want := next[m.GroupID]*groups + i%groups; i != want {
				t.Fatalf("group %s: got %d, want %d", m.GroupID, i, want)
			}
			next[m.GroupID]++
		}
		got += len(msgs)
		remove(t, q, receipts(msgs)...)
	}
	if n := b.memory.fresh.Load(); n != 0 {
		t.Errorf("%d messages are counted in the window, and there are none", n)
	}
}

func TestReceiveLooksPastLockedGroups(t *testing.T) {
	t.Parallel()
	b := openTest(t, limited(func(l *memoryLimits) { l.fifo = 20 }))
	q := create(t, b, "work.fifo", map[string]string{"FifoQueue": "true"})
	sendMany(t, q, 30, 1)
	send(t, q, queue.Outgoing{Body: "other", GroupID: "h", DedupID: "other"})
	msgs := take(t, q, 1)
	if got := take(t, q, 10); len(got) != 0 {
		t.Errorf("looked too far: %q", texts(got))
	}
	remove(t, q, msgs[0].ReceiptHandle)
	for len(msgs) > 0 {
		msgs = take(t, q, 10)
		for _, m := range msgs {
			if m.Body == "other" {
				return
			}
			remove(t, q, m.ReceiptHandle)
		}
	}
	t.Error("the other group never came")
}

func TestLargeBodies(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := create(t, b, "work", nil)
	large := make([]byte, queue.MaxMessageSize)
	for i := range large {
		large[i] = byte('a' + i%26)
	}
	for range 3 {
		send(t, q, body(string(large))...)
	}
	if used := b.memory.content.Load(); used != 0 {
		t.Errorf("%d bytes are cached", used)
	}
	for _, m := range take(t, q, 10) {
		if m.Body != string(large) {
			t.Error("a body came back changed")
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "dead", nil)
	q := create(t, b, "work", map[string]string{
		"VisibilityTimeout": "0", "RedrivePolicy": policy(b, "dead", 2),
	})
	f := create(t, b, "work.fifo", fifoAttributes)
	ctx := context.Background()
	var group sync.WaitGroup
	for c := range 4 {
		group.Go(func() {
			for i := range 60 {
				q.Send(ctx, []queue.Outgoing{{Body: fmt.Sprint(c, i)}, {Body: "delayed", Delay: new(time.Millisecond)}})
				f.Send(ctx, []queue.Outgoing{{Body: fmt.Sprint(c, i), GroupID: fmt.Sprint(i % 5)}})
			}
		})
		group.Go(func() {
			for range 60 {
				for _, q := range []*Queue{q, f, b.Queue("dead")} {
					msgs, _ := q.Receive(ctx, queue.ReceiveRequest{Max: 3})
					for _, m := range msgs {
						q.ChangeVisibility(ctx, []queue.VisibilityChange{{ReceiptHandle: m.ReceiptHandle, Visibility: time.Second}})
						q.Delete(ctx, []string{m.ReceiptHandle})
					}
				}
			}
		})
	}
	group.Go(func() {
		for range 20 {
			for _, name := range b.ListQueues("") {
				page, _, _ := b.Browse(ctx, name, BrowseRequest{Limit: 5})
				for i, m := range page {
					if i%2 == 0 {
						b.Move(ctx, name, "", []string{m.ID})
					} else {
						b.DeleteMessages(ctx, name, []string{m.ID})
					}
				}
				b.Attributes(name)
				b.OldestAge(name)
			}
			b.TotalLedger()
			b.SetAttributes(ctx, "work", map[string]string{"MessageRetentionPeriod": "60"})
			b.PurgeQueue(ctx, "dead")
		}
	})
	group.Wait()
	checkLedgers(t, b)
}

func TestE11InFlightLimit(t *testing.T) {
	t.Parallel()
	b := openTest(t, limited(func(l *memoryLimits) { l.inFlight = 15 }))
	q := create(t, b, "work", nil)
	f := create(t, b, "work.fifo", map[string]string{"FifoQueue": "true"})
	sendMany(t, q, 30, 0)
	sendMany(t, f, 30, 30)
	for _, q := range []*Queue{q, f} {
		if a, b := take(t, q, 10), take(t, q, 10); len(a) != 10 || len(b) != 5 {
			t.Errorf("%s: got %d and %d messages", q.Name(), len(a), len(b))
		}
	}
	if _, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 1}); !errors.Is(err,
		&queue.Error{Code: queue.CodeOverLimit}) {
		t.Errorf("on a standard queue: %v", err)
	}
	if got := take(t, f, 1); len(got) != 0 {
		t.Errorf("on a FIFO queue: %q", texts(got))
	}
}
