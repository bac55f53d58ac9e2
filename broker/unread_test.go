package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tendril/queue"
)

// unread gives a message back as if it had not been received.
func unread(t testing.TB, q *Queue, m queue.Message) {
	t.Helper()
	change := queue.VisibilityChange{ReceiptHandle: m.ReceiptHandle, Unread: true}
	if errs := q.ChangeVisibility(t.Context(), []queue.VisibilityChange{change}); errs != nil {
		t.Fatal(errs)
	}
}

// What was given back unread was not received, also after a restart; and a
// message in flight then keeps its receipt, though the count is behind its serial.
func TestUnreadHoldsOverARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := openDir(t, dir, nil)
	q := create(t, b, "work.fifo",
		map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "600"})
	send(t, q, queue.Outgoing{Body: "a", GroupID: "a"}, queue.Outgoing{Body: "b", GroupID: "b"})
	for range 3 {
		for _, m := range take(t, q, 2) {
			unread(t, q, m)
		}
	}
	flying := one(t, q)
	if flying.ReceiveCount != 1 {
		t.Errorf("received %d times, want 1", flying.ReceiveCount)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = openDir(t, dir, nil)
	q = b.Queue("work.fifo")
	stored, err := b.Message(t.Context(), "work.fifo", flying.ID)
	if err != nil || stored.ReceiveCount != 1 || stored.State != InFlight {
		t.Errorf("stored: %+v, %v", stored, err)
	}
	other := one(t, q)
	if other.ReceiveCount != 1 || other.ID == flying.ID || time.Since(other.FirstReceivedAt) > time.Minute {
		t.Errorf("after the restart: %+v", other)
	}
	remove(t, q, flying.ReceiptHandle, other.ReceiptHandle)
	if l, _ := b.Ledger("work.fifo"); l.Done != 2 {
		t.Errorf("%d done, want both", l.Done)
	}
}

// A directory from before receives could be taken back opens, with its counts.
func TestFileOfVersion3(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "old")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	key, sent := makeKey(1, 1), time.Now().UnixMilli()
	r := record{key: key, sent: sent, body: "x"}
	c, err := openConn(filepath.Join(dir, databaseName), "")
	if err == nil {
		err = c.script(`PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; BEGIN;` + schema + registrySchema + thirdSchema + fmt.Sprintf(`
			INSERT INTO queues VALUES (1, 'work', '{}', '{}', 0, 0, 0);
			INSERT INTO counters VALUES (1, 2, 0, 1, 0, 0, 0, 0, 0, 0);
			INSERT INTO messages (id, sent, sum, size, body) VALUES (%d, %d, %d, 1, 'x');
			INSERT INTO receipts VALUES (%d, 4, %d, %d, 0, 1);
			PRAGMA user_version = 3; COMMIT`, key, sent, r.checksum(), key, sent, sent))
	}
	if err == nil {
		err = c.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for want := 5; want <= 6; want++ { // the second time it is a file of today
		b := openDir(t, dir, nil)
		q := b.Queue("work")
		unread(t, q, one(t, q))
		m := one(t, q)
		if m.ReceiveCount != want {
			t.Errorf("received %d times, want %d", m.ReceiveCount, want)
		}
		if errs := q.ChangeVisibility(t.Context(), changes(m.ReceiptHandle)); errs != nil {
			t.Error(errs)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
