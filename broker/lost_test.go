package broker

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tendril/queue"
)

type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func lookAgain(b *Broker) {
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	b.disk.checked = b.disk.checked.Add(-measureEvery)
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestLostDataDirectoryRefusesSends(t *testing.T) {
	t.Parallel()
	mkdir := func(path string) error { return os.Mkdir(path, 0o700) }
	writeEmpty := func(path string) error { return os.WriteFile(path, nil, 0o600) }
	tests := []struct {
		name    string
		path    string                  // relative to the data directory
		gone    bool                    // removed; otherwise renamed and back
		replace func(path string) error // creates another in its place; may be nil
		cause   string
	}{
		{"removed", "", true, nil, "DIR was removed or moved"},
		{"renamed and back", "", false, nil, "DIR was removed or moved"},
		{"replaced by another and back", "", false, mkdir, "DIR was replaced"},
		{"a parent renamed and back", "..", false, nil, "DIR was removed or moved"},
		{"the queue database renamed and back", databaseName, false, nil, "DIR/queues.db was removed or moved"},
		{"the queue database replaced", databaseName, true, writeEmpty, "DIR/queues.db was replaced"},
		{"the log removed", databaseName + "-wal", true, nil, "DIR/queues.db-wal was removed or moved"},
		{"the index of the log removed", databaseName + "-shm", true, nil, "DIR/queues.db-shm was removed or moved"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var log logText
			dir := filepath.Join(t.TempDir(), "parent", "data")
			b := openDir(t, dir, &Options{NoWaits: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			q := create(t, b, "work", nil)
			send(t, q, body("a", "b", "c")...)
			if lost := b.Lost(); lost != nil {
				t.Fatal(lost)
			}
			path := filepath.Join(dir, test.path)
			if test.gone {
				removeAll(t, path)
			} else {
				rename(t, path, path+"-moved")
			}
			if test.replace != nil {
				if err := test.replace(path); err != nil {
					t.Fatal(err)
				}
			}
			lookAgain(b)
			cause := strings.ReplaceAll(test.cause, "DIR", dir)
			refused := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, &queue.Error{Code: queue.CodeStorageFailed}) || !strings.Contains(err.Error(), cause) {
					t.Errorf("%s: error %v, want %s", what, err, cause)
				}
			}
			for range 2 {
				_, err := q.Send(t.Context(), body("x"))
				refused("a send", err)
			}
			refused("a new queue", b.CreateQueue(t.Context(), "other", nil, nil))
			refused("new attributes", b.SetAttributes(t.Context(), "work", map[string]string{"VisibilityTimeout": "3"}))
			if lost := b.Lost(); lost == nil || lost.Error() != cause {
				t.Errorf("the cause is %v, want %s", lost, cause)
			}
			remove(t, q, one(t, q).ReceiptHandle)
			if n := strings.Count(log.String(), "data directory lost, sends are rejected"); n != 1 {
				t.Errorf("the log says it %d times, want once:\n%s", n, log.String())
			}
			if test.gone {
				if err := b.Close(); err == nil || !strings.Contains(err.Error(), cause) {
					t.Errorf("closing: %v, want %s", err, cause)
				}
				return
			}
			removeAll(t, path)
			rename(t, path+"-moved", path)
			lookAgain(b)
			send(t, q, body("d")...)
			if lost := b.Lost(); lost != nil || !strings.Contains(log.String(), "data directory restored, sends are accepted") {
				t.Errorf("back, but %v:\n%s", lost, log.String())
			}
			closeBroker(t, b)
			if l, err := openDir(t, dir, nil).Ledger("work"); err != nil || l.Sent != 4 || l.Done != 1 {
				t.Errorf("after a restart: %+v, %v", l, err)
			}
		})
	}
}

func TestLostDataDirectoryIsLeftAlone(t *testing.T) {
	t.Parallel()
	t.Run("moved", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "data")
		moved := openDir(t, dir, nil)
		send(t, create(t, moved, "work", nil), body("a")...)
		rename(t, dir, dir+"-moved")
		other := openDir(t, dir, nil)
		q := create(t, other, "work", nil)
		send(t, q, body("b")...)
		log, err := os.Stat(filepath.Join(dir, databaseName+"-wal"))
		if err != nil {
			t.Fatal(err)
		}
		if err := moved.Close(); err == nil {
			t.Error("the stop says nothing")
		}
		if now, err := os.Stat(filepath.Join(dir, databaseName+"-wal")); err != nil || !os.SameFile(now, log) {
			t.Errorf("the log of the other broker was removed: %v", err)
		}
		send(t, q, body("c")...)
		if got := texts(take(t, openDir(t, dir+"-moved", nil).Queue("work"), 10)); got != "a" {
			t.Errorf("the moved directory has %q", got)
		}
	})
	t.Run("without its log", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		b := openDir(t, dir, nil)
		send(t, create(t, b, "work", nil), body("a")...)
		removeAll(t, filepath.Join(dir, databaseName+"-wal"))
		if err := b.Close(); err == nil {
			t.Error("the stop says nothing")
		}
		if got := texts(take(t, openDir(t, dir, nil).Queue("work"), 10)); got != "a" {
			t.Errorf("the queue has %q", got)
		}
	})
}
