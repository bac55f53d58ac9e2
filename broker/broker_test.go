package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

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
		q, _ := b.queues.get(name)
		q.mu.Lock()
		low, high := q.index.low(), q.index.high()
		q.mu.Unlock()
		var n int64
		err = b.read(func(c *conn) (err error) {
			n, err = c.integer(`SELECT count(*) FROM messages WHERE id > ? AND id <= ?`, low, high)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n != l.Live {
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

// copyDir copies a store as kill -9 would leave it.
func copyDir(t interface{ Fatal(...any) }, from, to string) {
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

func ptr[T any](v T) *T { return &v }

func TestStandardQueue(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := create(t, b, "work", nil)
	send(t, q, body("a", "b", "c")...)
	msgs := take(t, q, 10)
	if texts(msgs) != "a b c" {
		t.Fatalf("got %q", texts(msgs))
	}
	for _, m := range msgs {
		if m.ReceiveCount != 1 || m.SentAt.IsZero() || m.FirstReceivedAt.IsZero() || m.SenderID != "000000000000" {
			t.Errorf("%+v", m)
		}
	}
	remove(t, q, msgs[0].ReceiptHandle, msgs[1].ReceiptHandle)
	l, _ := b.Ledger("work")
	if l.Sent != 3 || l.Done != 2 || l.InFlight != 1 || l.Live != 1 {
		t.Errorf("%+v", l)
	}
}

func TestFIFOQueue(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := create(t, b, "work.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
	for i := range 6 {
		send(t, q, queue.Outgoing{Body: fmt.Sprint(i), GroupID: fmt.Sprint("g", i%2)})
	}
	first := take(t, q, 2)
	if texts(first) != "0 2" {
		t.Fatalf("got %q", texts(first))
	}
	if got := texts(take(t, q, 10)); got != "1 3 5" {
		t.Fatalf("got %q", got)
	}
	if got := take(t, q, 10); len(got) != 0 {
		t.Fatalf("both groups are locked, got %q", texts(got))
	}
	remove(t, q, first[0].ReceiptHandle, first[1].ReceiptHandle)
	if got := texts(take(t, q, 10)); got != "4" {
		t.Fatalf("got %q", got)
	}
}

func TestReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := openDir(t, dir, nil)
	q := create(t, b, "work", nil)
	send(t, q, body("a", "b", "c")...)
	m := one(t, q)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = openDir(t, dir, nil)
	q = b.Queue("work")
	if got := texts(take(t, q, 10)); got != "b c" {
		t.Errorf("got %q", got)
	}
	remove(t, q, m.ReceiptHandle)
	l, _ := b.Ledger("work")
	if l.Done != 1 || l.Live != 2 || l.InFlight != 2 {
		t.Errorf("%+v", l)
	}
}

func TestLongPollWakes(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := create(t, b, "work", nil)
	got := make(chan string)
	go func() {
		msgs, err := q.Receive(context.Background(), queue.ReceiveRequest{Max: 1, Wait: ptr(20 * time.Second)})
		if err != nil {
			got <- err.Error()
		}
		got <- texts(msgs)
	}()
	send(t, q, body("a")...)
	if s := <-got; s != "a" {
		t.Errorf("got %q", s)
	}
}

func changes(handles ...string) (out []queue.VisibilityChange) {
	for _, h := range handles {
		out = append(out, queue.VisibilityChange{ReceiptHandle: h})
	}
	return out
}
