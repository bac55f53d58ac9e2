package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"tendril/internal/testing/faultfs"
	"tendril/internal/testing/losscheck"
	"tendril/queue"
)

const walName = databaseName + "-wal"

// Killing the process would not reveal a missing sync.
func TestASingleSendIsSynced(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(t)
	b := openTest(t, &Options{vfs: fs.Name()})
	q := create(t, b, "work", nil)
	f := create(t, b, "work.fifo", fifoAttributes)
	for i := range 50 {
		before := fs.Syncs(walName)
		if i%2 == 0 {
			send(t, q, body("x")...)
		} else {
			send(t, f, queue.Outgoing{Body: fmt.Sprint(i), GroupID: "g"})
		}
		if n := fs.Syncs(walName) - before; n < 1 {
			t.Fatalf("send %d: acknowledged after %d syncs of the log", i, n)
		}
		if m := take(t, q, 1); len(m) == 1 {
			remove(t, q, m[0].ReceiptHandle)
		}
	}
}

func TestMovesAndActsAreSynced(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(t)
	b := openTest(t, &Options{vfs: fs.Name(), NoWaits: true})
	synced := func(what string, act func()) {
		t.Helper()
		before := fs.Syncs(walName)
		if act(); fs.Syncs(walName) == before {
			t.Errorf("%s: not synced", what)
		}
	}
	synced("create", func() { create(t, b, "dead", nil) })
	q := create(t, b, "work",
		map[string]string{"VisibilityTimeout": "0",
			"RedrivePolicy": policy(b, "dead", 1)})
	send(t, q, body("a", "b")...)
	take(t, q, 10)
	synced("dead-letter move", func() { take(t, q, 10) })
	m := one(t, b.Queue("dead"))
	synced("move", func() {
		if n, err := b.Move(context.Background(), "dead", "work", []string{m.ID}); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
	synced("purge", func() { b.PurgeQueue(context.Background(), "work") })
	synced("set", func() { b.SetAttributes(context.Background(), "work", map[string]string{"DelaySeconds": "1"}) })
	synced("drop", func() { b.DeleteQueue(context.Background(), "work") })
}

// Otherwise a power failure could undo the new epoch, or a broken disk seem to work again.
func TestOpeningAndReopeningAreSynced(t *testing.T) {
	t.Parallel()
	fs, dir := faultfs.New(t), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var unsynced atomic.Bool
		fs.SetFail(func(op, path string, _ int) int32 {
			if filepath.Base(path) == walName {
				unsynced.Store(op == "write" || op != "sync" && unsynced.Load())
			}
			return sqlite3.SQLITE_OK
		})
		b := openDir(t, dir, &Options{Logger: quiet().Logger, vfs: fs.Name()})
		if unsynced.Load() {
			t.Error("the last write at opening is not synced")
		}
		broken := errors.New("broken")
		if err := b.writer.change(func(x *tx) { x.err = broken }, nil); !errors.Is(err, broken) {
			t.Errorf("the failure is %v", err)
		}
		synctest.Wait()
		if unsynced.Load() || b.writer.failed() != nil {
			t.Errorf("the last write at reopening is not synced; failure %v", b.writer.failed())
		}
	})
}

func TestFailedTransactionIsRolledBack(t *testing.T) {
	t.Parallel()
	s, err := openStore(t.TempDir(), "", defaultLimits().pages)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	commit := func(names ...string) error {
		group := []pendingRequest{{request: &change{run: func(x *tx) {
			for _, name := range names {
				x.exec(`INSERT INTO departed (name, at) VALUES (?, 1)`, name)
			}
		}}}}
		return newTx(s.write).commit(s, group)
	}
	if err := commit("a", "b", "a"); err == nil {
		t.Error("a name was inserted twice")
	}
	if err := commit("c"); err != nil {
		t.Errorf("after a failed transaction: %v", err)
	}
	if n, err := s.write.integer(`SELECT count(*) FROM departed`); n != 1 || err != nil {
		t.Errorf("%d names are stored, %v; want 1", n, err)
	}
}

type producer struct{ log losscheck.Log }

func (p *producer) send(q *Queue, text string) error {
	p.log.Sending(text)
	sent, err := q.Send(context.Background(), body(text))
	if err == nil {
		err = sent[0].Err
	}
	if err == nil {
		p.log.Sent(text)
	}
	return err
}

func (p *producer) consume(q *Queue, n int) {
	msgs, err := q.Receive(context.Background(), queue.ReceiveRequest{Max: n})
	if err != nil {
		return
	}
	for _, m := range msgs {
		p.log.Deleting(m.Body)
		q.Delete(context.Background(), []string{m.ReceiptHandle})
	}
}

func TestPowerFailure(t *testing.T) {
	t.Parallel()
	for _, keep := range []float64{0, 0.5, 1} {
		t.Run(fmt.Sprint("keep=", keep), func(t *testing.T) {
			t.Parallel()
			fs := faultfs.New(t)
			b := openTest(t, &Options{vfs: fs.Name()})
			q := create(t, b, "work", nil)
			p := &producer{}
			stop := make(chan struct{})
			var group sync.WaitGroup
			for c := range 4 {
				group.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						default:
						}
						if err := p.send(q, fmt.Sprintf("%d-%d", c, i)); err != nil {
							t.Error(err)
							return
						}
						if i%3 == 0 {
							p.consume(q, 2)
						}
					}
				})
			}
			r := rand.New(rand.NewPCG(1, uint64(keep*10)))
			for range 12 {
				failOnce(t, fs, b.dir, p, keep, r)
			}
			close(stop)
			group.Wait()
		})
	}
}

func failOnce(t *testing.T, fs *faultfs.FS, from string, p *producer, keep float64, r *rand.Rand) {
	t.Helper()
	before, _ := p.log.Acknowledged()
	for enough := before + r.IntN(20); before <= enough; {
		before, _ = p.log.Acknowledged()
	}
	dir := t.TempDir()
	seen := p.log.Snapshot()
	fs.PowerFailure(t, from, dir, keep, r)
	seen.AddAttempts(&p.log)
	b := openDir(t, dir, nil)
	for _, problem := range seen.Check(storedBodies(t, b)) {
		t.Error(problem)
	}
	checkIntegrity(t, b)
	checkLedgers(t, b)
	closeBroker(t, b)
}

func checkIntegrity(t testing.TB, b *Broker) {
	t.Helper()
	err := b.read(func(c *conn) error {
		return c.query(func(row row) {
			if row[0] != "ok" {
				t.Errorf("integrity: %v", row[0])
			}
		}, `PRAGMA integrity_check`)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestEveryCallFails(t *testing.T) {
	t.Parallel()
	codes := []struct {
		name string
		code map[string]int32
	}{
		{"io", map[string]int32{
			"open": sqlite3.SQLITE_CANTOPEN, "write": sqlite3.SQLITE_IOERR | 3<<8, "sync": sqlite3.SQLITE_IOERR | 4<<8,
			"truncate": sqlite3.SQLITE_IOERR | 6<<8,
		}},
		{"full", map[string]int32{"write": sqlite3.SQLITE_FULL, "sync": sqlite3.SQLITE_FULL}},
	}
	for _, c := range codes {
		for _, times := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/times=%d", c.name, times), func(t *testing.T) {
				t.Parallel()
				fs := faultfs.New(t)
				n, coarse := 1, 20
				if underRace {
					coarse = 4
				}
				for ; sweepOnce(t, fs, c.code, n, times); n += 1 + n/coarse {
					if t.Failed() {
						t.Fatalf("at call %d", n)
					}
				}
				t.Logf("swept %d calls", n)
			})
		}
	}
}

func TestReceivesAreStoredAfterAFailedWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		code int32
	}{{"full", sqlite3.SQLITE_FULL}, {"failed write", sqlite3.SQLITE_IOERR_WRITE}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fs, dir := faultfs.New(t), t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				b := openDir(t, dir, &Options{NoWaits: true, Logger: quiet().Logger, vfs: fs.Name()})
				q := create(t, b, "work", map[string]string{"VisibilityTimeout": "60"})
				send(t, q, body("a")...)
				fs.SetFail(func(op, _ string, _ int) int32 {
					if op == "write" {
						return c.code
					}
					return sqlite3.SQLITE_OK
				})
				one(t, q)
				time.Sleep(20 * time.Second)
				fs.SetFail(nil)
				time.Sleep(10 * time.Second)
				q = reopen(t, b).Queue("work")
				if msgs := take(t, q, 1); len(msgs) > 0 {
					t.Error("the message is visible at once after the restart")
				}
				time.Sleep(31 * time.Second)
				if m := one(t, q); m.ReceiveCount != 2 {
					t.Errorf("receive %d, want 2", m.ReceiveCount)
				}
			})
		})
	}
}

func TestFailedReadIsAnErrorOnlyOfEntriesThatNeedIt(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(q *Queue, receipts ...string) []error{
		"delete": func(q *Queue, receipts ...string) []error { return q.Delete(t.Context(), receipts) },
		"change of visibility": func(q *Queue, receipts ...string) []error {
			return q.ChangeVisibility(t.Context(), changes(receipts...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := openTest(t, nil)
				q := create(t, b, "work.fifo", fifoAttributes)
				sent := send(t, q, queue.Outgoing{Body: "a", GroupID: "a"}, queue.Outgoing{Body: "b", GroupID: "b"})
				received := one(t, q)
				other, _ := b.seal.origin(sent[1].ID)
				earlier := b.seal.handle(new(block), receipt{other, 1, b.epoch - 1})
				synctest.Wait()
				open := b.store.Load().reads
				b.store.Load().reads = make(chan *conn)
				close(b.store.Load().reads)
				errs := act(q, received.ReceiptHandle, earlier)
				b.store.Load().reads = open
				if len(errs) != 2 || errs[0] != nil || !errors.Is(errs[1], &queue.Error{Code: queue.CodeStorageFailed}) {
					t.Errorf("errors %v, want only one of the second entry", errs)
				}
				if l, _ := b.Ledger("work.fifo"); l.InFlight != 0 {
					t.Errorf("the first entry had no effect: %+v", l)
				}
			})
		})
	}
}

func TestCloseWhileTheDiskFails(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(t)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := openDir(t, dir, &Options{NoWaits: true, Logger: quiet().Logger, vfs: fs.Name()})
		q, p := create(t, b, "work", nil), &producer{}
		if err := p.send(q, "before"); err != nil {
			t.Fatal(err)
		}
		fs.SetFail(func(string, string, int) int32 { return sqlite3.SQLITE_IOERR })
		if err := p.send(q, "during"); !errors.Is(err, &queue.Error{Code: queue.CodeStorageFailed}) {
			t.Errorf("sending with a failing disk: %v", err)
		}
		time.Sleep(10 * time.Second)
		if err := b.Close(); err != nil {
			t.Errorf("closing with a failing disk: %v", err)
		}
		fs.SetFail(nil)
		b = openDir(t, dir, nil)
		checkNothingLost(t, b, &p.log)
	})
}

// sweepOnce fails the file operations n to n+times-1 and reports whether operation n was reached.
func sweepOnce(t *testing.T, fs *faultfs.FS, codes map[string]int32, n, times int) (reached bool) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		fs.SetFail(func(op, _ string, at int) int32 {
			if at < n || at >= n+times {
				return sqlite3.SQLITE_OK
			}
			reached = true
			return codes[op]
		})
		var b *Broker
		for b == nil {
			b, _ = Open(dir, &Options{NoWaits: true, Logger: quiet().Logger, vfs: fs.Name()})
		}
		p := &producer{}
		history(b, p)
		fs.SetFail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := p.send(b.Queue("work"), "after"); err != nil {
			t.Errorf("not at work again: %v", err)
		}
		checkNothingLost(t, b, &p.log)
		b = reopen(t, b)
		checkNothingLost(t, b, &p.log)
	})
	return reached
}

func history(b *Broker, p *producer) {
	ctx := context.Background()
	dead := policy(b, "dead", 1)
	for _, name := range []string{"dead", "work"} {
		for range 5 {
			err := b.CreateQueue(ctx, name, nil, nil)
			if err == nil {
				break
			}
			time.Sleep(time.Second)
		}
	}
	b.SetAttributes(ctx, "work", map[string]string{"VisibilityTimeout": "1"})
	q := b.Queue("work")
	for i := range 12 {
		p.send(q, fmt.Sprint("m", i))
		if i%4 == 3 {
			p.consume(q, 2)
		}
	}
	failed := func(n int) {
		msgs, _ := q.Receive(ctx, queue.ReceiveRequest{Max: n})
		for _, m := range msgs {
			b.RecordAttempt("work", m.ID, failing(500, m.Body))
		}
	}
	failed(2)
	time.Sleep(2 * time.Second)
	b.SetAttributes(ctx, "work", map[string]string{"RedrivePolicy": dead})
	failed(10)
	time.Sleep(2 * time.Second)
	failed(10)
	b.SetAttributes(ctx, "work", map[string]string{"RedrivePolicy": ""})
	page, _, _ := b.Browse(ctx, "dead", BrowseRequest{Limit: 2})
	for _, m := range page {
		b.Move(ctx, "dead", "work", []string{m.ID})
	}
	p.consume(b.Queue("dead"), 1)
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	fs := faultfs.New(t)
	b := openTest(t, &Options{vfs: fs.Name()})
	q := create(t, b, "work", nil)
	for i := range 30 {
		send(t, q, body(fmt.Sprint(i))...)
	}
	full := func(op, _ string, _ int) int32 {
		if op == "write" {
			return sqlite3.SQLITE_FULL
		}
		return sqlite3.SQLITE_OK
	}
	fs.SetFail(full)
	if _, err := q.Send(context.Background(), body("x")); !errors.Is(err, &queue.Error{Code: queue.CodeStorageFull}) {
		t.Errorf("sending on a full disk: %v", err)
	}
	fs.SetFail(nil)
	b.disk.mu.Lock()
	free := int64(0)
	b.disk.free = func(string) (int64, int64, error) { return free, 1 << 40, nil }
	b.disk.checked = time.Time{}
	b.disk.mu.Unlock()
	if _, err := q.Send(context.Background(), body("x")); !errors.Is(err, &queue.Error{Code: queue.CodeStorageFull}) {
		t.Errorf("sending on a nearly full disk: %v", err)
	}
	for range 30 {
		remove(t, q, one(t, q).ReceiptHandle)
	}
	b.disk.mu.Lock()
	free = 1 << 39
	b.disk.checked = time.Time{}
	b.disk.mu.Unlock()
	send(t, q, body("y")...)
}

// The broker must detect the damage or deliver only messages as they were sent.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := openDir(t, dir, nil)
	q := create(t, b, "work", nil)
	sent := map[string]string{}
	for i := range 60 {
		text := fmt.Sprint(i, strings.Repeat("x", i*7))
		sent[send(t, q, queue.Outgoing{Body: text, Attributes: attrs("n", "Number", fmt.Sprint(i))})[0].ID] = text
	}
	closeBroker(t, b)
	file, err := os.ReadFile(filepath.Join(dir, databaseName))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	unharmed, refused := 0, 0
	for i := range 60 {
		damaged := bytes.Clone(file)
		if i%10 == 0 {
			damaged = damaged[:r.IntN(len(damaged))]
		} else {
			damaged[r.IntN(len(damaged))] ^= 1 << r.IntN(8)
		}
		if n := receiveDamaged(t, damaged, sent); n == len(sent) {
			unharmed++
		} else {
			refused++
		}
	}
	if unharmed == 0 || refused == 0 {
		t.Errorf("%d copies gave all messages, %d did not: the test shows nothing", unharmed, refused)
	}
}

func receiveDamaged(t *testing.T, file []byte, sent map[string]string) (good int) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, databaseName), file, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Open(dir, quiet())
	if err != nil {
		return 0
	}
	defer b.Close()
	for {
		msgs, err := b.Queue("work").Receive(t.Context(), queue.ReceiveRequest{Max: 10})
		if err != nil || len(msgs) == 0 {
			return good
		}
		for _, m := range msgs {
			i := strings.TrimRight(m.Body, "x")
			if sent[m.ID] != m.Body || len(m.Attributes) != 1 || m.Attributes[0].Value != i {
				t.Errorf("received %q as %s", m.Body, m.ID)
			}
			good++
		}
	}
}

func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	dir, backup := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	b := openDir(t, dir, nil)
	send(t, create(t, b, "work", nil), body("a", "b", "c")...)
	closeBroker(t, b)
	if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	b = openDir(t, dir, nil)
	q := b.Queue("work")
	remove(t, q, one(t, q).ReceiptHandle)
	send(t, q, body("d")...)
	closeBroker(t, b)

	b = openDir(t, backup, nil)
	q = b.Queue("work")
	if got := texts(take(t, q, 10)); got != "a b c" {
		t.Errorf("the backup has %q, want a b c", got)
	}
	if l, err := b.Ledger("work"); err != nil || l.Sent != 3 || l.Done != 0 || l.Live != 3 {
		t.Errorf("the ledger of the backup is %+v, %v", l, err)
	}
}
