package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"tendril/broker"
	"tendril/queue"
)

type server struct {
	w    *world
	root string

	mu      sync.Mutex
	b       *broker.Broker
	life    int
	dir     string
	opening bool

	disk struct {
		sync.Mutex
		dead         string
		fails        kind
		fault        int
		began, ended time.Time
	}
}

const (
	deadQueue = "dead"
	workQueue = "work"
	walName   = "queues.db-wal"
	marksName = "inflight"
)

func (w *world) queueName(name string) string {
	if w.plan.FIFO {
		return name + ".fifo"
	}
	return name
}

func (s *server) current() (*broker.Broker, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b, s.life
}

func (s *server) alive(life int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life == life
}

// run retries while the disk fails, like a service manager.
func (s *server) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.b != nil || s.opening {
		return
	}
	s.opening = true
	s.w.ending.Go(func() { s.open(s.dir) })
}

func (s *server) open(dir string) {
	for {
		b, err := broker.Open(dir, &broker.Options{NoWaits: true, Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			if err = s.create(b); err == nil {
				s.mu.Lock()
				s.b, s.opening = b, false
				s.mu.Unlock()
				s.w.note("queue is open")
				return
			}
			_ = b.Close()
		}
		s.w.note("queue does not open: %v", err)
		sleep(context.Background(), time.Second)
	}
}

func (s *server) create(b *broker.Broker) error {
	ctx, p := context.Background(), s.w.plan
	attrs := map[string]string{"MessageRetentionPeriod": "1209600"}
	if p.FIFO {
		attrs["FifoQueue"] = "true"
	}
	limit := p.MaxReceives
	if s.w.bug == bugDeadLetterEarly {
		limit--
	}
	own := map[string]string{"VisibilityTimeout": fmt.Sprint(int(p.Visibility / time.Second)),
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, b.ARN(s.w.queueName(deadQueue)),
			limit)}
	exists := &queue.Error{Code: queue.CodeQueueNameExists}
	for _, name := range []string{deadQueue, workQueue} {
		if err := b.CreateQueue(ctx, s.w.queueName(name), attrs, nil); err != nil && !errors.Is(err, exists) {
			return err
		}
	}
	return b.SetAttributes(ctx, s.w.queueName(workQueue), own)
}

func (s *server) take() *broker.Broker {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.b
	if s.b = nil; b != nil {
		s.life++
	}
	return b
}

func (s *server) stop() error {
	if b := s.take(); b != nil {
		return b.Close()
	}
	return nil
}

// After a kill, all writes survive; after a power failure, all synced ones, and each other one with probability keep.
func (s *server) crash(isPower bool, keep float64) bool {
	b := s.take()
	if b == nil {
		return false
	}
	s.mu.Lock()
	from, to := s.dir, filepath.Join(s.root, fmt.Sprint("disk-", s.life))
	s.dir = to
	s.mu.Unlock()
	if err := os.Mkdir(to, 0o700); err != nil {
		s.w.t.Fatal(err)
	}
	if isPower {
		s.w.fs.PowerFailure(s.w.t, from, to, keep, rand.New(rand.NewPCG(s.w.plan.Seed, uint64(s.life))))
	} else {
		s.w.fs.Kill(s.w.t, from, to)
		marks, err := os.ReadFile(filepath.Join(from, marksName))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, marksName), marks, 0o600)
		}
		if err != nil {
			s.w.t.Fatal(err)
		}
	}
	if s.w.bug == bugLoseLog {
		_ = os.Remove(filepath.Join(to, walName))
	}
	s.disk.Lock()
	s.disk.dead = from
	s.disk.Unlock()
	_ = b.Close()
	s.w.fs.Forget(from)
	_ = os.RemoveAll(from)
	return true
}

func (s *server) fail(op, path string, n int) int32 {
	s.disk.Lock()
	defer s.disk.Unlock()
	switch {
	case s.disk.dead != "" && strings.HasPrefix(path, s.disk.dead+"/"):
		return sqlite3.SQLITE_IOERR
	case s.disk.fails == fillDisk && (op == "write" || op == "sync"):
		s.w.injected(fillDisk)
		return sqlite3.SQLITE_FULL
	case s.disk.fails == failDisk && s.w.plan.roll("disk", s.disk.fault, n) < s.w.plan.Faults[s.disk.fault].Chance/4:
		s.w.injected(failDisk)
		return map[string]int32{"open": sqlite3.SQLITE_CANTOPEN, "write": sqlite3.SQLITE_IOERR_WRITE,
			"truncate": sqlite3.SQLITE_IOERR_TRUNCATE, "sync": sqlite3.SQLITE_IOERR_FSYNC}[op]
	}
	return sqlite3.SQLITE_OK
}

func (s *server) setDisk(how kind, fault int) {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.disk.fails, s.disk.fault = how, fault
	if how == "" {
		s.disk.ended = time.Now()
	} else if s.diskFailingLocked().IsZero() {
		s.disk.began = time.Now()
	}
}

// After a disk failure, the broker takes up to five seconds to reopen its file, and another to retry receives.
const recovers = 7 * time.Second

func (s *server) diskFailing() time.Time {
	s.disk.Lock()
	defer s.disk.Unlock()
	return s.diskFailingLocked()
}

func (s *server) diskFailingLocked() time.Time {
	if s.disk.fails == "" && time.Since(s.disk.ended) > recovers {
		return time.Time{}
	}
	return s.disk.began
}

func (s *server) stored(name string) (list []broker.Stored, err error) {
	b, _ := s.current()
	if b == nil {
		return nil, errors.New("the queue is down")
	}
	for after := ""; ; {
		req := broker.BrowseRequest{Limit: 1000, After: after}
		page, next, err := b.Browse(context.Background(), s.w.queueName(name), req)
		if list = append(list, page...); err != nil || next == "" {
			return list, err
		}
		after = next
	}
}
