package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func TestTidy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := openDir(t, dir, quiet())
		q := create(t, b, "work", nil)
		f := create(t, b, "work.fifo", fifoAttributes)
		for range 250 {
			var batch []queue.Outgoing
			for range queue.MaxBatch {
				batch = append(batch, queue.Outgoing{Body: strings.Repeat("x", 3000)})
			}
			send(t, q, batch...)
		}
		send(t, f, queue.Outgoing{Body: "x", GroupID: "g"})
		take(t, q, 1)
		time.Sleep(time.Second)
		size := func() (n int64) {
			for _, name := range []string{databaseName, databaseName + "-wal"} {
				if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
					n += info.Size()
				}
			}
			return n
		}
		before := size()
		if n, err := b.PurgeQueue(t.Context(), "work"); n != 2500 || err != nil {
			t.Fatal(n, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if after := size(); after > slackPages*4096+1<<20 || after > before/2 {
			t.Errorf("%d bytes before, %d after", before, after)
		}
		for table, want := range map[string]int64{"messages": 1, "receipts": 0, "garbage": 0} {
			if n := rows(t, b, table); n != want {
				t.Errorf("%d rows in %s, want %d", n, table, want)
			}
		}
		if rows(t, b, "dedup") != 1 {
			t.Error("the deduplication id is gone too early")
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if rows(t, b, "dedup") != 0 {
			t.Error("an expired deduplication id is still there")
		}
		if b.writer.maintenance.armed {
			t.Error("cleaning up goes on with nothing to do")
		}
	})
}

func TestTidyWhileBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, quiet())
		q := create(t, b, "work", nil)
		f := create(t, b, "work.fifo", map[string]string{"FifoQueue": "true"})
		n := 0
		busy := func(length time.Duration) {
			for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(tidySoon / 2) {
				n++
				send(t, f, queue.Outgoing{Body: "x", GroupID: fmt.Sprint(n), DedupID: fmt.Sprint(n)})
				remove(t, f, one(t, f).ReceiptHandle)
			}
		}
		for range 150 {
			send(t, q, slices.Repeat([]queue.Outgoing{{Body: strings.Repeat("x", 30_000)}}, queue.MaxBatch)...)
		}
		backlog := integerOf(t, b, `PRAGMA page_count`)
		for range 150 {
			remove(t, q, receipts(take(t, q, queue.MaxBatch))...)
			busy(time.Millisecond)
		}
		busy(11 * time.Minute)
		if pages := integerOf(t, b, `PRAGMA page_count`); pages > slackPagesBusy+512 || pages > backlog/2 {
			t.Errorf("the file has %d pages, and had %d with the backlog", pages, backlog)
		}
		if ids := rows(t, b, "dedup"); ids < 600 || ids > 610 {
			t.Errorf("%d deduplication ids are remembered, of %d", ids, n)
		}
	})
}

func TestLogIsTruncatedOnlyWhileTheWriterIsIdle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := openDir(t, dir, quiet())
		create(t, b, "work", nil)
		err := b.writer.change(func(*tx) {}, func() {
			b.writer.maintenance.vacuumed = true
			for _, busy := range []bool{true, false} {
				if more, err := b.writer.maintenance.vacuum(b.store.Load(), busy); more || err != nil {
					t.Errorf("more pages to remove: %t, %v", more, err)
				}
				if size := sizeOf(filepath.Join(dir, walName)); (size > 0) != busy {
					t.Errorf("the log has %d bytes; busy: %t", size, busy)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestLongLogIsCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := openDir(t, dir, quiet())
	q := create(t, b, "work", nil)
	length := func(name string) int64 {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	wal := databaseName + "-wal"
	fill := func() { send(t, q, slices.Repeat(body(strings.Repeat("x", 100_000)), queue.MaxBatch)...) }
	reader := <-b.store.Load().reads // a reader keeps the log from restarting
	if err := reader.script(`BEGIN; SELECT count(*) FROM queues`); err != nil {
		t.Fatal(err)
	}
	for length(wal) <= logLimit {
		fill()
	}
	if err := reader.script(`ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	b.store.Load().reads <- reader
	for n := 0; length(wal) > logLimit && n < 200; n++ {
		fill()
	}
	if got := length(wal); got > logLimit {
		t.Errorf("the log has %d bytes after it started over, at most %d are wanted", got, logLimit)
	}
	for range 2 * checkpointEvery {
		send(t, q, body("x")...)
	}
	if got := length("reserve"); got > logLimit+2*reserveUnit {
		t.Errorf("%d bytes are reserved beside a log of %d", got, length(wal))
	}
}
