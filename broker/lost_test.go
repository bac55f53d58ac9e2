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

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// Receives and deletes must still work. Once the files are back, all calls must.
func TestLostDataDirectoryRefusesSends(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		lose  func(t *testing.T, dir string) (back func())
		cause string
	}{
		{"removed", func(t *testing.T, dir string) func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			return nil
		}, "DIR was removed or moved"},
		{"renamed and back", func(t *testing.T, dir string) func() {
			rename(t, dir, dir+"-moved")
			return func() { rename(t, dir+"-moved", dir) }
		}, "DIR was removed or moved"},
		{"replaced by another and back", func(t *testing.T, dir string) func() {
			rename(t, dir, dir+"-moved")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			return func() { rename(t, dir, dir+"-other"); rename(t, dir+"-moved", dir) }
		}, "DIR was replaced"},
		{"a parent renamed and back", func(t *testing.T, dir string) func() {
			parent := filepath.Dir(dir)
			rename(t, parent, parent+"-moved")
			return func() { rename(t, parent+"-moved", parent) }
		}, "DIR was removed or moved"},
		{"the queue database renamed and back", func(t *testing.T, dir string) func() {
			rename(t, filepath.Join(dir, databaseName), filepath.Join(dir, "old"))
			return func() { rename(t, filepath.Join(dir, "old"), filepath.Join(dir, databaseName)) }
		}, "DIR/queues.db was removed or moved"},
		{"the queue database replaced", func(t *testing.T, dir string) func() {
			rename(t, filepath.Join(dir, databaseName), filepath.Join(dir, "old"))
			if err := os.WriteFile(filepath.Join(dir, databaseName), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return nil
		}, "DIR/queues.db was replaced"},
		{"the log removed", func(t *testing.T, dir string) func() {
			if err := os.Remove(filepath.Join(dir, databaseName+"-wal")); err != nil {
				t.Fatal(err)
			}
			return nil
		}, "DIR/queues.db-wal was removed or moved"},
		{"the index of the log removed", func(t *testing.T, dir string) func() {
			if err := os.Remove(filepath.Join(dir, databaseName+"-shm")); err != nil {
				t.Fatal(err)
			}
			return nil
		}, "DIR/queues.db-shm was removed or moved"},
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
			back := test.lose(t, dir)
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
			if back == nil {
				if err := b.Close(); err == nil || !strings.Contains(err.Error(), cause) {
					t.Errorf("closing: %v, want %s", err, cause)
				}
				return
			}
			back()
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

// Close must keep the messages of a directory that was moved or whose log was removed.
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
		if err := os.Remove(filepath.Join(dir, databaseName+"-wal")); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err == nil {
			t.Error("the stop says nothing")
		}
		if got := texts(take(t, openDir(t, dir, nil).Queue("work"), 10)); got != "a" {
			t.Errorf("the queue has %q", got)
		}
	})
}
