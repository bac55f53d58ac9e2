package aws

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"tendril/internal/cron/leader"
	"tendril/internal/registry"
)

func changeLeader(t *testing.T, table *Table) {
	type run struct {
		elector *leader.Elector
		cancel  context.CancelFunc
	}
	var runs []run
	var all sync.WaitGroup
	for i := range 2 {
		e, err := leader.New(registry.NewLeases(table),
			leader.Options{Name: "handover", Owner: fmt.Sprint("node-", i), Lease: 30 * time.Second, Renew: time.Second,
				Standstill: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		runs = append(runs, run{e, cancel})
		t.Cleanup(cancel)
		all.Go(func() {
			if err := e.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		if i == 0 {
			awaitTerm(t, e)
		}
	}
	before, ok := runs[0].elector.Term()
	if _, other := runs[1].elector.Term(); other {
		if still, yes := runs[0].elector.Term(); ok && yes && still == before {
			t.Error("both are in charge")
		}
	}
	runs[0].cancel()
	if after := awaitTerm(t, runs[1].elector); after <= before {
		t.Errorf("term %d came after term %d", after, before)
	}
	if s := runs[1].elector.Status(); s.Leader != "node-1" {
		t.Errorf("status of the second: %+v", s)
	}
	runs[1].cancel()
	all.Wait()
	if l, err := registry.NewLeases(table).Read(context.Background(), "handover"); err != nil || !l.Released {
		t.Errorf("after both have stopped: %+v, %v", l, err)
	}
}

func awaitTerm(t *testing.T, e *leader.Elector) int64 {
	t.Helper()
	for {
		changed := e.Changed()
		if term, ok := e.Term(); ok {
			return term
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("the test ended before anybody was in charge: %+v", e.Status())
		}
	}
}
