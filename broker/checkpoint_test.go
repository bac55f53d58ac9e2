package broker

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

// The constant reads keep the log from restarting.
func TestLogStaysBounded(t *testing.T) {
	t.Parallel()
	dir := testpeer.MemoryFolder(t)
	b := openDir(t, dir, quiet())
	q := create(t, b, "work", nil)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				b.Browse(t.Context(), "work", BrowseRequest{Limit: 100})
			}
		}
	}()
	batch := make([]queue.Outgoing, queue.MaxBatch)
	for i := range batch {
		batch[i].Body = strings.Repeat("x", 40_000)
	}
	const batches = 250
	for range batches {
		send(t, q, batch...)
	}
	close(stop)
	<-done
	info, err := os.Stat(filepath.Join(b.dir, databaseName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(2*checkpointPages+checkpointEvery*110) * 4200; info.Size() > most {
		t.Errorf("the log has %d bytes, more than %d", info.Size(), most)
	}
	if l, _ := b.Ledger("work"); l.Live != batches*queue.MaxBatch {
		t.Errorf("%d messages", l.Live)
	}
}

func TestOpenDoesNotWaitForACheckpoint(t *testing.T) {
	t.Parallel()
	dir := testpeer.MemoryFolder(t)
	b := openDir(t, dir, quiet())
	q := create(t, b, "work", nil)
	batch := slices.Repeat([]queue.Outgoing{{Body: strings.Repeat("x", 40_000)}}, queue.MaxBatch)
	for range checkpointEvery {
		send(t, q, batch...)
	}
	killed := filepath.Join(t.TempDir(), "killed")
	copyDir(t, b.dir, killed)
	before, err := os.ReadFile(filepath.Join(killed, databaseName))
	if err != nil {
		t.Fatal(err)
	}
	s, err := openStore(killed, "", defaultLimits().pages)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	var log, copied int64
	err = s.write.query(func(row row) { log, copied = row.int(1), row.int(2) }, `PRAGMA wal_checkpoint(NOOP)`)
	if err != nil || log < 1_000 || copied != 0 {
		t.Errorf("the log has %d pages, of which %d were copied: %v", log, copied, err)
	}
	if after, err := os.ReadFile(filepath.Join(killed, databaseName)); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the database was written to: %v", err)
	}
}
