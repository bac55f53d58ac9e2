package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"tendril/internal/registry"
	"tendril/internal/testing/faultfs"
	"tendril/queue"
)

var runTime = time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)

func runOf(name, task string, n int) registry.Run {
	at := runTime.Add(time.Duration(n) * time.Hour)
	return registry.Run{Queue: name, ID: task + "@" + at.Format(time.RFC3339), Task: task, ScheduledAt: at,
		Message: queue.Outgoing{Body: "x"}}
}

// Term 0 means without a lease.
func enqueueRun(ctx context.Context, b *Broker, term int64, run registry.Run) (registry.EnqueueResult, error) {
	return registry.NewRuns(b.Registry(), registry.Scope{Lease: "tasks"}).Enqueue(ctx, term, run)
}

func lastRun(t testing.TB, b *Broker, task string) time.Time {
	t.Helper()
	rows, err := b.Registry().Read(t.Context(), registry.KindTask, task)
	if err != nil {
		t.Fatal(err)
	}
	return registry.TimesOf(rows[0]).UpTo
}

func holdLease(t testing.TB, b *Broker, version string, term int64, released bool) {
	t.Helper()
	r := registry.NewLeases(b.Registry())
	old, err := r.Read(t.Context(), "tasks")
	if err != nil {
		t.Fatal(err)
	}
	won, _, err := r.Swap(t.Context(), "tasks", old, queue.Lease{Version: version, Term: term, Released: released})
	if !won || err != nil {
		t.Fatalf("writing the lease: %v, %v", won, err)
	}
}

func runRows(t testing.TB, b *Broker) map[string]string {
	t.Helper()
	rows := map[string]string{}
	err := b.read(func(c *conn) error {
		return c.query(func(row row) {
			rows[row[0].(string)] = row[1].(string)
		}, `SELECT id, message FROM fires`)
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestEnqueue(t *testing.T) {
	t.Parallel()
	for name, attrs := range map[string]map[string]string{"work": nil, "work.fifo": {"FifoQueue": "true"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openTest(t, nil)
			q := create(t, b, name, attrs)
			run := runOf(name, "report", 0)
			run.Message = queue.Outgoing{Body: "run",
				Attributes: []queue.Attribute{{Name: "beanstalk.sqsd.path", Type: "String", Value: "/a"}}}
			if attrs != nil {
				run.Message.GroupID, run.Message.DedupID = "g", "d"
			}
			result, err := enqueueRun(t.Context(), b, 0, run)
			first := result.Sent
			if result.Already || err != nil || first.ID == "" || (first.SequenceNumber == "") != (attrs == nil) {
				t.Fatalf("enqueued %+v, %v", result, err)
			}
			got := one(t, q)
			if got.ID != first.ID || got.Body != "run" || got.Attribute("beanstalk.sqsd.path") != "/a" ||
				got.SequenceNumber != first.SequenceNumber {
				t.Errorf("received %+v", got)
			}
			remove(t, q, got.ReceiptHandle)
			again, err := enqueueRun(t.Context(), b, 0, run)
			if !again.Already || err != nil || again.Sent != first {
				t.Errorf("enqueued again %+v, %v; want %+v", again, err, first)
			}
			if l, _ := b.Ledger(name); l.Sent != 1 {
				t.Errorf("%d messages sent, want 1", l.Sent)
			}
		})
	}
}

func TestEnqueueOfAFIFODuplicate(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := create(t, b, "work.fifo", map[string]string{"FifoQueue": "true"})
	run := runOf("work.fifo", "report", 0)
	run.Message = queue.Outgoing{Body: "run", GroupID: "g", DedupID: "d"}
	first := send(t, q, run.Message)[0]
	result, err := enqueueRun(t.Context(), b, 0, run)
	if result.Sent != first || result.Already || err != nil {
		t.Errorf("enqueued %+v, %v; want %+v", result, err, first)
	}
	if rows := runRows(t, b); len(rows) != 1 {
		t.Errorf("noted %v", rows)
	}
}

func TestRefusedRunsAreNotRecorded(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "work", nil)
	holdLease(t, b, "a", 2, false)
	if _, err := enqueueRun(t.Context(), b, 2, runOf("work", "report", 1)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		term   int64
		change func(r *registry.Run)
		code   string
	}{
		"stale":         {1, func(*registry.Run) {}, queue.CodeStaleTerm},
		"no queue":      {2, func(r *registry.Run) { r.Queue = "other" }, queue.CodeQueueDoesNotExist},
		"no id":         {2, func(r *registry.Run) { r.ID = "" }, queue.CodeInvalidParameterValue},
		"bad task":      {2, func(r *registry.Run) { r.Task = "\x00" }, queue.CodeInvalidParameterValue},
		"no time":       {2, func(r *registry.Run) { r.ScheduledAt = time.Time{} }, queue.CodeInvalidParameterValue},
		"bad message":   {2, func(r *registry.Run) { r.Message.Body = "\x00" }, queue.CodeInvalidMessageContents},
		"empty message": {2, func(r *registry.Run) { r.Message.Body = "" }, queue.CodeMissingRequiredParameter},
	} {
		run := runOf("work", "report", 2)
		c.change(&run)
		if _, err := enqueueRun(t.Context(), b, c.term, run); !errors.Is(err, &queue.Error{Code: c.code}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	rows := runRows(t, b)
	last := lastRun(t, b, "report")
	if l, _ := b.Ledger("work"); l.Sent != 1 || len(rows) != 1 || !last.Equal(runTime.Add(time.Hour)) {
		t.Errorf("%d messages sent, runs %v, the last at %v", l.Sent, rows, last)
	}
}

func TestConcurrentEnqueuesOfARunSendOneMessage(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "work", nil)
	ids := make([]string, 32)
	fresh := 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			result, err := enqueueRun(t.Context(), b, 0, runOf("work", "report", 0))
			mu.Lock()
			defer mu.Unlock()
			if ids[i] = result.Sent.ID; err != nil {
				t.Error(err)
			}
			if !result.Already {
				fresh++
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Errorf("told different messages: %v", ids)
		}
	}
	if l, _ := b.Ledger("work"); l.Sent != 1 || fresh != 1 {
		t.Errorf("%d messages, %d told that theirs is the first", l.Sent, fresh)
	}
}

func TestEnqueueIntoADeletedQueue(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := liveOf(t, create(t, b, "work", nil))
	next := registry.Record{Kind: registry.KindRun, Key: "report@1"}
	sending, err := newSending(q, body("x"))
	if err != nil {
		t.Fatal(err)
	}
	f := &recordWrite{sending: sending, changes: []registry.Change{{Old: next, Next: next}}}
	if err := b.DeleteQueue(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	if err := b.writer.doUntil(t.Context(), f, needsFsync|needsSpace); !errors.Is(err, queue.ErrNoQueue) {
		t.Errorf("enqueued: %v", err)
	}
	if rows := runRows(t, b); len(rows) != 0 {
		t.Errorf("noted %v", rows)
	}
}

func TestRegistryIsSynced(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(t)
	b := openTest(t, &Options{vfs: fs.Name()})
	q, runs := create(t, b, "work", nil), registry.NewRuns(b.Registry(), registry.Scope{})
	for i := range 5 {
		for what, act := range map[string]func() error{
			"run": func() error {
				_, err := runs.Enqueue(t.Context(), 0, runOf("work", "report", i))
				return err
			},
			"swap":  func() error { holdLease(t, b, fmt.Sprint("v", i), 1, false); return nil },
			"pause": func() error { return runs.SetPaused(t.Context(), "report", "", i%2 == 0) },
		} {
			for _, m := range take(t, q, 10) { // so that the latest commit has no sync
				remove(t, q, m.ReceiptHandle)
			}
			before := fs.Syncs(walName)
			if err := act(); err != nil || fs.Syncs(walName) == before {
				t.Errorf("%s: %v, not synced", what, err)
			}
		}
	}
}

func TestEnqueueIsAtomic(t *testing.T) {
	t.Parallel()
	for _, code := range []map[string]int32{
		{"write": sqlite3.SQLITE_IOERR | 3<<8, "sync": sqlite3.SQLITE_IOERR | 4<<8, "truncate": sqlite3.SQLITE_IOERR | 6<<8},
		{"write": sqlite3.SQLITE_FULL, "sync": sqlite3.SQLITE_FULL},
	} {
		t.Run(fmt.Sprint(code["write"]), func(t *testing.T) {
			t.Parallel()
			fs := faultfs.New(t)
			failed, n := 0, 1
			for more := true; more && !t.Failed(); n++ {
				var refused bool
				more, refused = enqueueOnce(t, fs, code, n)
				if refused {
					failed++
				}
			}
			if t.Logf("failed %d calls, %d runs", n-1, failed); failed == 0 {
				t.Error("no enqueue failed: nothing was shown")
			}
		})
	}
}

// enqueueOnce enqueues three runs while the n-th file operation after opening fails, then repeats them. reached is
// false with fewer operations; refused means that an enqueue failed at first.
func enqueueOnce(t *testing.T, fs *faultfs.FS, code map[string]int32, n int) (reached, refused bool) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, &Options{NoWaits: true, Logger: quiet().Logger, vfs: fs.Name()})
		create(t, b, "work", nil)
		holdLease(t, b, "a", 1, false)
		fs.SetFail(func(op, _ string, at int) int32 {
			if at != n {
				return sqlite3.SQLITE_OK
			}
			reached = true
			return code[op]
		})
		run := func(i int) error {
			run := runOf("work", "report", i)
			run.Message.Body = run.ID
			_, err := enqueueRun(context.Background(), b, 1, run)
			return err
		}
		for i := range 3 {
			refused = run(i) != nil || refused
		}
		fs.SetFail(nil)
		time.Sleep(time.Minute)
		compareRuns(t, b)
		for i := range 3 {
			if err := run(i); err != nil {
				t.Errorf("repeated: %v", err)
			}
		}
		compareRuns(t, b)
		if l, _ := b.Ledger("work"); l.Sent != 3 {
			t.Errorf("%d messages sent, want 3", l.Sent)
		}
	})
	return reached, refused
}

func compareRuns(t *testing.T, b *Broker) {
	t.Helper()
	page := browsed(t, b, "work", BrowseRequest{})
	rows := runRows(t, b)
	for _, m := range page {
		if rows[m.Body] != m.ID {
			t.Errorf("message %s of run %s is there; noted is %q", m.ID, m.Body, rows[m.Body])
		}
	}
	if len(rows) != len(page) {
		t.Errorf("%d runs noted, %d messages there", len(rows), len(page))
	}
	checkLedgers(t, b)
}

func TestExpiredRunsAreDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		create(t, b, "work", nil)
		run := func(n int) {
			t.Helper()
			if _, err := enqueueRun(t.Context(), b, 0, runOf("work", "report", n)); err != nil {
				t.Fatal(err)
			}
		}
		for n := range runSweep + 10 {
			run(n)
		}
		time.Sleep(runRetention)
		run(1000)
		if n := len(runRows(t, b)); n != runSweep+11 {
			t.Errorf("%d runs noted, want all within 30 days", n)
		}
		time.Sleep(time.Minute)
		for i, want := range []int{12, 3, 4} {
			run(1001 + i)
			if n := len(runRows(t, b)); n != want {
				t.Errorf("%d runs noted, want %d", n, want)
			}
		}
		if lastRun(t, b, "report").IsZero() {
			t.Error("the last run is forgotten")
		}
	})
}

func TestEnqueueEndsWithItsContext(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(t)
	b := openTest(t, &Options{vfs: fs.Name()})
	create(t, b, "work", nil)
	stuck, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	fs.SetFail(func(op, _ string, _ int) int32 {
		if op == "sync" {
			once.Do(func() { close(stuck); <-release })
		}
		return sqlite3.SQLITE_OK
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-stuck; cancel() }()
	_, err := enqueueRun(ctx, b, 0, runOf("work", "report", 0))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("answered %v", err)
	}
	close(release)
	if again, err := enqueueRun(t.Context(), b, 0, runOf("work", "report", 0)); !again.Already || err != nil {
		t.Errorf("repeated: %+v, %v", again, err)
	}
}

func TestFilesOfOtherFormatsAreRefused(t *testing.T) {
	t.Parallel()
	for _, version := range []int{1, oldestReadable - 1, schemaVersion + 1} {
		dir := t.TempDir()
		if err := openDir(t, dir, nil).Close(); err != nil {
			t.Fatal(err)
		}
		alterDatabase(t, dir, fmt.Sprintf(`PRAGMA user_version = %d`, version))
		for range 2 {
			_, err := Open(dir, nil)
			want := fmt.Sprintf("format %d, but this program reads formats %d and %d", version, oldestReadable, schemaVersion)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("opening a file of format %d: %v", version, err)
			}
		}
	}
}
