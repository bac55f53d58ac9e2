package broker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

func blockWriter(t *testing.T, b *Broker) (release func()) {
	t.Helper()
	entered, gate := make(chan struct{}), make(chan struct{})
	go b.writer.change(func(*tx) {
		close(entered)
		<-gate
	}, func() {})
	<-entered
	return func() {
		close(gate)
		synctest.Wait()
	}
}

func TestConcurrentRemovalsCountOnce(t *testing.T) {
	t.Parallel()
	type stage struct {
		b          *Broker
		q          *Queue
		handle, id string
	}
	acts := map[string]func(t *testing.T, s stage){
		"delete": func(t *testing.T, s stage) { s.q.Delete(t.Context(), []string{s.handle}) },
		"remove": func(t *testing.T, s stage) { s.b.DeleteMessages(t.Context(), s.q.Name(), []string{s.id}) },
		"move":   func(t *testing.T, s stage) { s.b.Move(t.Context(), s.q.Name(), "other"+suffixOf(s.q), []string{s.id}) },
		"purge":  func(t *testing.T, s stage) { s.b.PurgeQueue(t.Context(), s.q.Name()) },
		"drop":   func(t *testing.T, s stage) { s.b.DeleteQueue(t.Context(), s.q.Name()) },
		"expire": nil,
		"show": func(t *testing.T, s stage) {
			s.b.SetAttributes(t.Context(), s.q.Name(),
				map[string]string{"RedrivePolicy": policy(s.b, "other"+suffixOf(s.q), 1)})
			s.q.ChangeVisibility(t.Context(), changes(s.handle))
			s.q.Receive(t.Context(), queue.ReceiveRequest{Max: 1})
		},
	}
	for first := range acts {
		for second := range acts {
			for _, fifo := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s-%s-%t", first, second, fifo), func(t *testing.T) {
					dir := testpeer.MemoryFolder(t)
					synctest.Test(t, func(t *testing.T) {
						b := openDir(t, dir, quiet())
						attrs, suffix := map[string]string{"MessageRetentionPeriod": "60"}, ""
						if fifo {
							attrs["FifoQueue"], attrs["ContentBasedDeduplication"], suffix = "true", "true", ".fifo"
						}
						create(t, b, "other"+suffix, attrs)
						q := create(t, b, "work"+suffix, attrs)
						out := body("x")
						if fifo {
							out[0].GroupID = "g"
						}
						id := send(t, q, out...)[0].ID
						time.Sleep(59500 * time.Millisecond)
						s := stage{b, q, one(t, q).ReceiptHandle, id}
						release := blockWriter(t, b)
						for _, name := range []string{first, second} {
							if act := acts[name]; act != nil {
								go act(t, s)
							} else {
								time.Sleep(time.Second)
							}
							synctest.Wait()
						}
						release()
						time.Sleep(2 * time.Second)
						synctest.Wait()
						total := b.TotalLedger()
						if ends := total.Done + total.Expired + total.Purged + total.Live; ends != 1 {
							t.Errorf("one message, and %d ends of it: %+v", ends, total)
						}
					})
				})
			}
		}
	}
}

func suffixOf(q *Queue) string {
	if _, err := checkName(q.Name(), map[string]string{"FifoQueue": "true"}); err == nil {
		return ".fifo"
	}
	return ""
}

func holdPublication(t *testing.T, b *Broker, seen func(), acts ...func()) {
	t.Helper()
	release := blockWriter(t, b)
	committed, gate := make(chan struct{}), make(chan struct{})
	go b.writer.change(func(*tx) {}, func() {
		close(committed)
		<-gate
	})
	synctest.Wait()
	for _, act := range acts {
		go act()
		synctest.Wait()
	}
	release()
	<-committed
	seen()
	close(gate)
	synctest.Wait()
}

func TestUnpublishedRowsAreInvisible(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, quiet())
		q := create(t, b, "work", nil)
		live := liveOf(t, q)
		id := live.broker.seal.messageID(new(block), makeKey(live.index.number, 1))
		holdPublication(t, b, func() {
			if page, _, err := b.Browse(t.Context(), "work", BrowseRequest{}); len(page) != 0 || err != nil {
				t.Errorf("browsed %v, %v", page, err)
			}
			if s, err := b.Message(t.Context(), "work", id); err == nil {
				t.Errorf("found %v", s)
			}
			if n, err := b.DeleteMessages(t.Context(), "work", []string{id}); n != 0 || err != nil {
				t.Errorf("deleted %d, %v", n, err)
			}
		}, func() { q.Send(t.Context(), body("a")) })
		m := one(t, q)
		if m.ID != id {
			t.Errorf("received %s, want %s", m.ID, id)
		}
		remove(t, q, m.ReceiptHandle)
		checkLedgers(t, b)
	})
}

func TestADelayIsCountedOnceWhileSettingsChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, quiet())
		q := create(t, b, "work.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true",
			"DelaySeconds": "10"})
		holdPublication(t, b, func() {},
			func() { b.SetAttributes(t.Context(), "work.fifo", map[string]string{"DelaySeconds": "20"}) },
			func() { q.Send(t.Context(), []queue.Outgoing{{Body: "a", GroupID: "g"}}) })
		if l, err := b.Ledger("work.fifo"); l.Live != 1 || l.Delayed != 1 || err != nil {
			t.Errorf("ledger %+v, %v", l, err)
		}
		time.Sleep(21 * time.Second)
		checkLedgers(t, b)
		one(t, q)
	})
}

func TestDeletedDuringFill(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := create(t, b, "work", nil)
	send(t, q, body("a", "b")...)
	m := one(t, q)
	b = reopen(t, b)
	q = b.Queue("work")
	live := liveOf(t, q)
	live.mu.Lock()
	w := &live.index.window
	f := &fill{done: make(chan struct{}), generation: w.generation, limit: 10, low: w.cursor, high: w.tail}
	w.filling = f
	live.mu.Unlock()
	if err := b.read(func(c *conn) error { return f.read(c, live.index.number) }); err != nil || len(f.main) != 2 {
		t.Fatal(len(f.main), err)
	}
	remove(t, q, m.ReceiptHandle)
	live.mu.Lock()
	live.index.merge(f)
	w.filling = nil
	live.mu.Unlock()
	if got := texts(take(t, q, 10)); got != "b" {
		t.Errorf("got %q", got)
	}
}

func TestDeleteLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		q := create(t, b, "work", nil)
		send(t, q, body("a", "b", "c")...)
		msgs := take(t, q, 10)
		time.Sleep(time.Second)
		remove(t, q, msgs[0].ReceiptHandle, msgs[1].ReceiptHandle)
		if n, err := b.DeleteMessages(t.Context(), "work", []string{msgs[2].ID}); n != 1 || err != nil {
			t.Error(n, err)
		}
		for _, table := range []string{"messages", "receipts"} {
			if n := rows(t, b, table); n != 0 {
				t.Errorf("%d rows in %s", n, table)
			}
		}
	})
}
