package broker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"tendril/queue"
)

func openTest(t testing.TB, opts *Options) *Broker {
	t.Helper()
	return openDir(t, t.TempDir(), opts)
}

func openDir(t testing.TB, dir string, opts *Options) *Broker {
	t.Helper()
	if opts == nil {
		opts = &Options{NoWaits: true}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	b, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !b.background.closing.Load() {
			checkLedgers(t, b)
			if err := b.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
		}
	})
	return b
}

// Read-only.
var fifoAttributes = map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}

func closeBroker(t testing.TB, b *Broker) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func reopen(t testing.TB, b *Broker) *Broker {
	t.Helper()
	closeBroker(t, b)
	return openDir(t, b.dir, nil)
}

func alterDatabase(t testing.TB, dir, script string) {
	t.Helper()
	c, err := openConn(filepath.Join(dir, databaseName), "")
	if err == nil {
		err = errors.Join(c.script(script), c.close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func liveOf(t testing.TB, q *Queue) *liveQueue {
	t.Helper()
	live, err := q.b.live(q.name)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

func storeReceives(t testing.TB, q *Queue) {
	t.Helper()
	live := liveOf(t, q)
	live.mu.Lock()
	err := live.submitReceives(q.b.clock.now())
	live.mu.Unlock()
	if err := cmp.Or(err, q.b.writer.change(func(*tx) {}, nil)); err != nil {
		t.Fatal(err)
	}
}

func checkLedgers(t testing.TB, b *Broker) {
	t.Helper()
	for _, name := range b.ListQueues("") {
		l, err := b.Ledger(name)
		if err != nil {
			t.Fatal(err)
		}
		if l.Sent+l.MovedIn != l.Done+l.DeadLettered+l.MovedOut+l.Expired+l.Purged+l.Live ||
			l.Live != l.Visible+l.Delayed+l.InFlight || l.Visible < 0 {
			t.Errorf("%s: the ledger does not balance: %+v", name, l)
		}
		q, _ := b.live(name)
		keys := q.keys()
		if n := integerOf(t, b, `SELECT count(*) FROM messages WHERE id > ? AND id <= ?`, keys.low, keys.high); n != l.Live {
			t.Errorf("%s: %d messages on disk, %d in the ledger", name, n, l.Live)
		}
	}
	total := b.TotalLedger()
	if total.MovedIn != total.DeadLettered+total.MovedOut {
		t.Errorf("moves do not balance: %+v", total)
	}
}

func create(t testing.TB, b *Broker, name string, attrs map[string]string) *Queue {
	t.Helper()
	if err := b.CreateQueue(context.Background(), name, attrs, nil); err != nil {
		t.Fatalf("creating %s: %v", name, err)
	}
	return b.Queue(name)
}

func send(t testing.TB, q *Queue, msgs ...queue.Outgoing) []queue.Sent {
	t.Helper()
	sent, err := q.Send(context.Background(), msgs)
	if err != nil {
		t.Fatalf("sending to %s: %v", q.Name(), err)
	}
	for _, s := range sent {
		if s.Err != nil {
			t.Fatalf("sending to %s: %v", q.Name(), s.Err)
		}
	}
	return sent
}

func body(texts ...string) (out []queue.Outgoing) {
	for _, s := range texts {
		out = append(out, queue.Outgoing{Body: s})
	}
	return out
}

func take(t testing.TB, q *Queue, n int) []queue.Message {
	t.Helper()
	msgs, err := q.Receive(context.Background(), queue.ReceiveRequest{Max: n})
	if err != nil {
		t.Fatalf("receiving from %s: %v", q.Name(), err)
	}
	return msgs
}

func one(t testing.TB, q *Queue) queue.Message {
	t.Helper()
	msgs := take(t, q, 1)
	if len(msgs) != 1 {
		t.Fatalf("received %d messages from %s, want 1", len(msgs), q.Name())
	}
	return msgs[0]
}

func remove(t testing.TB, q *Queue, receipts ...string) {
	t.Helper()
	for _, err := range q.Delete(context.Background(), receipts) {
		if err != nil {
			t.Fatalf("deleting from %s: %v", q.Name(), err)
		}
	}
}

func texts(msgs []queue.Message) string {
	s := ""
	for i, m := range msgs {
		if i > 0 {
			s += " "
		}
		s += m.Body
	}
	return s
}

func copyDir(t tester, from, to string) {
	t.Helper()
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{databaseName, databaseName + "-wal", marksName} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func changes(handles ...string) (out []queue.VisibilityChange) {
	for _, h := range handles {
		out = append(out, queue.VisibilityChange{ReceiptHandle: h})
	}
	return out
}
