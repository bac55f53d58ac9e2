package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

// Purged messages, expired deduplication ids and free pages are gone after a
// while of idleness, and then nothing ticks any more.
func TestTidy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := openDir(t, dir, quiet())
		defer b.Close()
		q := create(t, b, "work", nil)
		f := create(t, b, "work.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
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
		// What stays is the slack that is allowed, and little else.
		if after := size(); after > slackPages*4096+1<<20 || after > before/2 {
			t.Errorf("%d bytes before, %d after", before, after)
		}
		count := func(table string) (n int64) {
			err := b.read(func(c *conn) (err error) {
				n, err = c.integer(`SELECT count(*) FROM ` + table)
				return err
			})
			if err != nil {
				t.Error(err)
			}
			return n
		}
		if messages, receipts, garbage := count("messages"), count("receipts"), count("garbage"); messages != 1 ||
			receipts != 0 || garbage != 0 {
			t.Errorf("%d messages, %d receipts, %d ranges of garbage", messages, receipts, garbage)
		}
		if count("dedup") != 1 {
			t.Error("the deduplication id is gone too early")
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if count("dedup") != 0 {
			t.Error("an expired deduplication id is still there")
		}
		if b.writer.upkeep.armed {
			t.Error("cleaning up goes on with nothing to do")
		}
	})
}
