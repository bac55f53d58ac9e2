package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tendril/queue"
)

// The log stays bounded, also while somebody always reads, and all is there.
func TestLogStaysBounded(t *testing.T) {
	t.Parallel()
	b := openDir(t, fastDir(t), quiet())
	t.Cleanup(func() { os.RemoveAll(b.dir) })
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
	const batches = 250 // some 25,000 pages
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
