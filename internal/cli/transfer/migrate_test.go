package transfer

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"tendril/broker"
	"tendril/internal/migrate"
	"tendril/queue"
)

// countedOnce fails the count at the end of a migration.
type countedOnce struct {
	*embeddedEnd
	counted bool
}

func (e *countedOnce) Count(ctx context.Context) (migrate.Count, error) {
	if e.counted {
		return migrate.Count{}, errors.New("no connection")
	}
	e.counted = true
	return e.embeddedEnd.Count(ctx)
}

func TestTableSaysThatUncountedQueuesAreNotBalanced(t *testing.T) {
	t.Parallel()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	for _, name := range []string{"from", "to"} {
		if err := b.CreateQueue(t.Context(), name, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Queue("from").Send(t.Context(), []queue.Outgoing{{Body: "x"}}); err != nil {
		t.Fatal(err)
	}
	journal, err := migrate.OpenJournal(filepath.Join(t.TempDir(), "journal"), "from", "to")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { journal.Close() })

	from, to := &embeddedEnd{b: b, name: "from"}, &countedOnce{embeddedEnd: &embeddedEnd{b: b, name: "to"}}
	result, err := migrate.Run(t.Context(), from, to, journal, migrate.Options{SourceExact: true, DestinationExact: true})
	if err == nil {
		t.Fatal("the last count went well")
	}
	if row := resultList.Row(&result); row[2] != "1" || row[len(row)-1] != "NO" {
		t.Errorf("the row is %q", row)
	}
}
