package broker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"tendril/internal/testing/faultfs"
	"tendril/queue"
)

var runTime = time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)

// runOf is the unfenced run of a task, n hours after runTime.
func runOf(name, task string, n int) RunRequest {
	at := runTime.Add(time.Duration(n) * time.Hour)
	return RunRequest{Queue: name, ID: task + "@" + at.Format(time.RFC3339), Task: task, At: at}
}

func holdLease(t testing.TB, r *Registry, version string, term int64, released bool) {
	t.Helper()
	old, err := r.Read(t.Context(), "tasks")
	if err != nil {
		t.Fatal(err)
	}
	won, _, err := r.Swap(t.Context(), "tasks", old, queue.Lease{Version: version, Term: term, Released: released})
	if !won || err != nil {
		t.Fatalf("writing the lease: %v, %v", won, err)
	}
}

// runRows returns the noted runs: message ids by run ids.
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
			q, r := create(t, b, name, attrs), b.Registry()
			m := queue.Outgoing{Body: "run",
				Attributes: []queue.Attribute{{Name: "beanstalk.sqsd.path", Type: "String", Value: "/a"}}}
			if attrs != nil {
				m.GroupID, m.DedupID = "g", "d"
			}
			first, already, err := r.Enqueue(t.Context(), runOf(name, "report", 0), m)
			if already || err != nil || first.ID == "" || (first.SequenceNumber == "") != (attrs == nil) {
				t.Fatalf("enqueued %+v, %v, %v", first, already, err)
			}
			got := one(t, q)
			if got.ID != first.ID || got.Body != "run" || got.Attribute("beanstalk.sqsd.path") != "/a" ||
				got.SequenceNumber != first.SequenceNumber {
				t.Errorf("received %+v", got)
			}
			remove(t, q, got.ReceiptHandle)
			// The message is gone; the run is not made again for that.
			again, already, err := r.Enqueue(t.Context(), runOf(name, "report", 0), m)
			if !already || err != nil || again != first {
				t.Errorf("enqueued again %+v, %v, %v; want %+v", again, already, err, first)
			}
			if l, _ := b.Ledger(name); l.Sent != 1 {
				t.Errorf("%d messages sent, want 1", l.Sent)
			}
		})
	}
}

// A run whose message was sent within the deduplication window, by whatever
// way, is noted with that message.
func TestEnqueueOfAFIFODuplicate(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := create(t, b, "work.fifo", map[string]string{"FifoQueue": "true"})
	m := queue.Outgoing{Body: "run", GroupID: "g", DedupID: "d"}
	first := send(t, q, m)[0]
	sent, already, err := b.Registry().Enqueue(t.Context(), runOf("work.fifo", "report", 0), m)
	if sent != first || already || err != nil {
		t.Errorf("enqueued %+v, %v, %v; want %+v", sent, already, err, first)
	}
	if rows := runRows(t, b); len(rows) != 1 {
		t.Errorf("noted %v", rows)
	}
}

func TestEnqueueIsFenced(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "work", nil)
	r := b.Registry()
	try := func(n int, term int64) error {
		req := runOf("work", "report", n)
		req.Lease, req.Term = "tasks", term
		_, _, err := r.Enqueue(t.Context(), req, queue.Outgoing{Body: "x"})
		return err
	}
	stale := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, queue.ErrStaleTerm) {
			t.Errorf("%s: %v", what, err)
		}
	}
	stale("no lease was ever written", try(0, 1))
	holdLease(t, r, "a", 1, false)
	if err := try(1, 1); err != nil {
		t.Errorf("the holder: %v", err)
	}
	stale("a term to come", try(2, 2))
	holdLease(t, r, "b", 2, false)
	stale("a term that is over", try(2, 1))
	stale("a term that is over, a run that was made", try(1, 1))
	if err := try(1, 2); err != nil {
		t.Errorf("a run that was made, by the next holder: %v", err)
	}
	holdLease(t, r, "c", 2, true)
	stale("a term that was given back", try(3, 2))
	if _, _, err := r.Enqueue(t.Context(), runOf("work", "by hand", 0), queue.Outgoing{Body: "x"}); err != nil {
		t.Errorf("without a fence: %v", err)
	}
	if l, _ := b.Ledger("work"); l.Sent != 2 {
		t.Errorf("%d messages sent, want 2", l.Sent)
	}
	last, err := r.Last(t.Context(), []string{"report"})
	if err != nil || !last["report"].Equal(runTime.Add(time.Hour)) {
		t.Errorf("refused runs moved the last one: %v, %v", last, err)
	}
}

func TestLast(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "work", nil)
	r := b.Registry()
	last := func() time.Time {
		t.Helper()
		all, err := r.Last(t.Context(), []string{"report", "never"})
		if err != nil {
			t.Fatal(err)
		}
		if _, there := all["never"]; there {
			t.Errorf("a task that never ran has a last run: %v", all)
		}
		return all["report"]
	}
	if !last().IsZero() {
		t.Errorf("last is %v before the first", last())
	}
	outside := runOf("work", "report", 9)
	outside.Task = ""
	for _, step := range []struct {
		req  RunRequest
		want int
	}{{runOf("work", "report", 1), 1}, {runOf("work", "report", 3), 3}, {runOf("work", "report", 2), 3}, {outside, 3}} {
		if _, _, err := r.Enqueue(t.Context(), step.req, queue.Outgoing{Body: "x"}); err != nil {
			t.Fatal(err)
		}
		if want := runTime.Add(time.Duration(step.want) * time.Hour); !last().Equal(want) || last().Location() != time.UTC {
			t.Errorf("last is %v, want %v", last(), want)
		}
	}
}

func TestEnqueueRefusals(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "work", nil)
	change := func(f func(r *RunRequest)) RunRequest {
		req := runOf("work", "report", 0)
		f(&req)
		return req
	}
	for name, c := range map[string]struct {
		req  RunRequest
		body string
		code string
	}{
		"no queue":           {change(func(r *RunRequest) { r.Queue = "other" }), "x", queue.CodeQueueDoesNotExist},
		"no id":              {change(func(r *RunRequest) { r.ID = "" }), "x", queue.CodeInvalidParameterValue},
		"bad task":           {change(func(r *RunRequest) { r.Task = "\x00" }), "x", queue.CodeInvalidParameterValue},
		"no time":            {change(func(r *RunRequest) { r.At = time.Time{} }), "x", queue.CodeInvalidParameterValue},
		"term without lease": {change(func(r *RunRequest) { r.Term = 1 }), "x", queue.CodeInvalidParameterValue},
		"lease without term": {change(func(r *RunRequest) { r.Lease = "tasks" }), "x", queue.CodeInvalidParameterValue},
		"negative term": {change(func(r *RunRequest) {
			r.Lease, r.Term = "tasks", -1
		}), "x", queue.CodeInvalidParameterValue},
		"bad message":   {runOf("work", "report", 0), "\x00", queue.CodeInvalidMessageContents},
		"empty message": {runOf("work", "report", 0), "", queue.CodeMissingRequiredParameter},
	} {
		_, _, err := b.Registry().Enqueue(t.Context(), c.req, queue.Outgoing{Body: c.body})
		if !errors.Is(err, &queue.Error{Code: c.code}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if rows := runRows(t, b); len(rows) != 0 {
		t.Errorf("refused, and noted: %v", rows)
	}
}

// Of many that enqueue the same run at once, one is first, and all are told its
// message, also when their calls share a transaction.
func TestOneRunOfMany(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "work", nil)
	ids := make([]string, 32)
	fresh := 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			sent, already, err := b.Registry().Enqueue(t.Context(), runOf("work", "report", 0), queue.Outgoing{Body: "x"})
			mu.Lock()
			defer mu.Unlock()
			if ids[i] = sent.ID; err != nil {
				t.Error(err)
			}
			if !already {
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

// A run that comes to the disk after its queue has gone is not taken for made.
func TestEnqueueIntoAQueueThatHasGone(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "work", nil)
	q, err := b.queues.get("work")
	if err != nil {
		t.Fatal(err)
	}
	f := &runSending{sending: newSending(q, body("x")), req: runOf("work", "report", 0)}
	if err := b.DeleteQueue(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	if err := b.writer.do(t.Context(), f, needs{durable: true, space: true}); !errors.Is(err, queue.ErrNoQueue) {
		t.Errorf("enqueued: %v", err)
	}
	if rows := runRows(t, b); len(rows) != 0 {
		t.Errorf("noted %v", rows)
	}
}

// Runs are on the disk before they are answered, leases and pauses too.
func TestRegistryIsSynced(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(t)
	b := openTest(t, &Options{vfs: fs.Name()})
	q, r := create(t, b, "work", nil), b.Registry()
	for i := range 5 {
		for what, act := range map[string]func() error{
			"run": func() error {
				_, _, err := r.Enqueue(t.Context(), runOf("work", "report", i), queue.Outgoing{Body: "x"})
				return err
			},
			"swap":  func() error { holdLease(t, r, fmt.Sprint("v", i), 1, false); return nil },
			"pause": func() error { return r.SetPaused(t.Context(), "report", "", i%2 == 0) },
		} {
			for _, m := range take(t, q, 10) { // an unsynced commit, in between
				remove(t, q, m.ReceiptHandle)
			}
			before := fs.Syncs(walName)
			if err := act(); err != nil || fs.Syncs(walName) == before {
				t.Errorf("%s: %v, not synced", what, err)
			}
		}
	}
}

// Whichever change of a file fails, a run is noted exactly if its message is
// there, and a repeat with the same id leaves one of both.
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

// enqueueOnce lets the n-th change of a file after the opening fail. It reports
// whether there were so many, and whether a run was answered with an error.
func enqueueOnce(t *testing.T, fs *faultfs.FS, code map[string]int32, n int) (reached, refused bool) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := openDir(t, dir, &Options{NoWaits: true, Logger: quiet().Logger, vfs: fs.Name()})
		create(t, b, "work", nil)
		r := b.Registry()
		holdLease(t, r, "a", 1, false)
		fs.SetFail(func(op, _ string, at int) int32 {
			if at != n {
				return sqlite3.SQLITE_OK
			}
			reached = true
			return code[op]
		})
		run := func(i int) error {
			req := runOf("work", "report", i)
			req.Lease, req.Term = "tasks", 1
			_, _, err := r.Enqueue(context.Background(), req, queue.Outgoing{Body: req.ID})
			return err
		}
		for i := range 3 {
			refused = run(i) != nil || refused
		}
		fs.SetFail(nil)
		time.Sleep(time.Minute) // recovery
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
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return reached, refused
}

// compareRuns compares the noted runs with the messages, whose bodies are
// their runs' ids.
func compareRuns(t *testing.T, b *Broker) {
	t.Helper()
	page, _, err := b.Browse(context.Background(), "work", BrowseRequest{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
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

// Old runs are forgotten, a few with each new one.
func TestOldRunsAreForgotten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := openDir(t, dir, nil)
		create(t, b, "work", nil)
		r := b.Registry()
		run := func(n int) {
			t.Helper()
			if _, _, err := r.Enqueue(t.Context(), runOf("work", "report", n), queue.Outgoing{Body: "x"}); err != nil {
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
		if last, err := r.Last(t.Context(), []string{"report"}); err != nil || len(last) != 1 {
			t.Errorf("the last run is forgotten: %v, %v", last, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A call ends with its context, whatever the disk does; the run may be made.
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
	_, _, err := b.Registry().Enqueue(ctx, runOf("work", "report", 0), queue.Outgoing{Body: "x"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("answered %v", err)
	}
	close(release)
	if _, already, err := b.Registry().Enqueue(t.Context(), runOf("work", "report", 0),
		queue.Outgoing{Body: "x"}); !already || err != nil {
		t.Errorf("repeated: %v, %v", already, err)
	}
}

// A file of another format is refused, and left as it is.
func TestFilesOfOtherFormatsAreRefused(t *testing.T) {
	t.Parallel()
	for _, version := range []int{1, oldestReadable - 1, schemaVersion + 1} {
		dir := t.TempDir()
		if err := openDir(t, dir, nil).Close(); err != nil {
			t.Fatal(err)
		}
		c, err := openConn(filepath.Join(dir, databaseName), "")
		if err == nil {
			err = errors.Join(c.script(fmt.Sprintf(`PRAGMA user_version = %d`, version)), c.close())
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := Open(dir, nil)
			want := fmt.Sprintf("format %d, this program reads formats %d and %d", version, oldestReadable, schemaVersion)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("opening a file of format %d: %v", version, err)
			}
		}
	}
}
