package leader

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

const work = "work:shop/1"

type candidate struct {
	held *Work
	err  error
	over chan struct{}
}

func begin(ctx context.Context, store Store, owner string, repeat bool) *candidate {
	c := &candidate{over: make(chan struct{})}
	go func() {
		defer close(c.over)
		c.held, c.err = AcquireWork(ctx, store, Options{Name: work, Owner: owner}, repeat, time.Minute)
	}()
	return c
}

func (c *candidate) waits() bool {
	synctest.Wait()
	select {
	case <-c.over:
		return false
	default:
		return true
	}
}

func (c *candidate) mustHold(t *testing.T) *Work {
	t.Helper()
	<-c.over
	if c.held == nil || c.err != nil {
		t.Fatalf("held %v, %v; want to hold it", c.held, c.err)
	}
	return c.held
}

func (c *candidate) mustSkip(t *testing.T) {
	t.Helper()
	<-c.over
	if c.held != nil || c.err != nil {
		t.Fatalf("held %v, %v; want none", c.held, c.err)
	}
}

func finish(t *testing.T, c *Work, done bool) {
	t.Helper()
	if err := c.Finish(t.Context(), done); err != nil {
		t.Fatal(err)
	}
}

func TestWorkIsDoneByOneInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		first := begin(t.Context(), store, "a", false).mustHold(t)
		second := begin(t.Context(), store, "b", false)
		time.Sleep(time.Hour)
		if !second.waits() || first.Context().Err() != nil {
			t.Fatalf("the second instance does not wait for the first, whose work goes on")
		}
		finish(t, first, true)
		second.mustSkip(t)
		begin(t.Context(), store, "c", false).mustSkip(t)
		finish(t, begin(t.Context(), store, "a", true).mustHold(t), true)
	})
}

func TestFailedWorkIsTakenOverAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		first := begin(t.Context(), store, "a", false).mustHold(t)
		second := begin(t.Context(), store, "b", false)
		synctest.Wait()
		finish(t, first, false)
		at := time.Now()
		held := second.mustHold(t)
		if waited := time.Since(at); waited > 5*time.Second {
			t.Errorf("it was taken over after %s, want one renewal at most", waited)
		}
		if term := store.Stored(work).Term; term != 2 {
			t.Errorf("term %d, want 2", term)
		}
		finish(t, held, true)
	})
}

func TestWorkOfADeadInstanceIsTakenOverWhenItsLeaseExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		dead := queue.Lease{Owner: "dead", Version: "1", Term: 1, Duration: 15 * time.Second}
		if _, _, err := store.Swap(t.Context(), work, queue.Lease{}, dead); err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		held := begin(t.Context(), store, "b", false).mustHold(t)
		if waited := time.Since(at); waited < 15*time.Second || waited > 21*time.Second {
			t.Errorf("it was taken over after %s, want 15 s and a look", waited)
		}
		finish(t, held, true)
	})
}

func TestWorkIsLostWhenTheStoreFailsForItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		held := begin(t.Context(), store, "a", false).mustHold(t)
		away := errors.New("away")
		store.SetFault(func(bool) storeFault { return storeFault{Drop: true, Err: away} })
		at := time.Now()
		<-held.Context().Done()
		if waited := time.Since(at); waited > 12*time.Second || !errors.Is(context.Cause(held.Context()), errWorkLost) {
			t.Errorf("lost after %s with %v; want within the trust of 12 s", waited, context.Cause(held.Context()))
		}
		if err := held.Finish(t.Context(), true); !errors.Is(err, errWorkLost) {
			t.Errorf("finishing lost work: %v", err)
		}
		waiting := begin(t.Context(), store, "b", false)
		at = time.Now()
		<-waiting.over
		if waited := time.Since(at); !errors.Is(waiting.err, away) || waited != time.Minute {
			t.Errorf("without the store: %v after %s, want the patience of 1m0s", waiting.err, waited)
		}
	})
}

func TestRenewedWorkIsLostWithinItsTrust(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		held := begin(t.Context(), store, "a", false).mustHold(t)
		time.Sleep(time.Hour)
		store.SetFault(func(bool) storeFault { return storeFault{Drop: true, Err: errors.New("away")} })
		at := time.Now()
		<-held.Context().Done()
		if waited := time.Since(at); waited > 12*time.Second {
			t.Errorf("lost after %s", waited)
		}
	})
}

func TestFinishEndsWithTheTrustWhenTheStoreFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		held := begin(t.Context(), store, "a", false).mustHold(t)
		away := errors.New("away")
		store.SetFault(func(bool) storeFault { return storeFault{Drop: true, Err: away} })
		at := time.Now()
		if err := held.Finish(t.Context(), true); !errors.Is(err, away) {
			t.Errorf("finished with %v", err)
		}
		if took := time.Since(at); took != 12*time.Second {
			t.Errorf("it took %s, want 12s", took)
		}
	})
}

func TestFinishAfterARenewalWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		held := begin(t.Context(), store, "a", false).mustHold(t)
		time.Sleep(4 * time.Second)
		store.SetFault(func(bool) storeFault { return storeFault{Err: errors.New("lost")} })
		time.Sleep(1500 * time.Millisecond) // enough for a renewal
		store.SetFault(nil)
		finish(t, held, true)
		if data := store.Stored(work).Data; data != workDone {
			t.Errorf("stored %q", data)
		}
	})
}

func take(t *testing.T, store *memoryStore, other queue.Lease) {
	t.Helper()
	if won, _, err := store.Swap(t.Context(), work, store.Stored(work), other); !won || err != nil {
		t.Fatalf("taking the lease: %v, %v", won, err)
	}
}

func TestFinishOfWorkThatAnotherInstanceTook(t *testing.T) {
	t.Parallel()
	for _, other := range []queue.Lease{{Owner: "b", Version: "x", Term: 1}, {Owner: "a", Version: "x", Term: 2}} {
		synctest.Test(t, func(t *testing.T) {
			store := newMemory()
			held := begin(t.Context(), store, "a", false).mustHold(t)
			take(t, store, other)
			if err := held.Finish(t.Context(), true); !errors.Is(err, errWorkLost) {
				t.Errorf("finished with %v while %+v holds it", err, other)
			}
		})
	}
}

func TestWaitingForWorkIsReportedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		first := begin(t.Context(), store, "a", false).mustHold(t)
		var followed []Following
		waiting, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = AcquireWork(waiting, store, Options{Name: work, Owner: "b",
				Events: &Events{Following: func(f Following) { followed = append(followed, f) }}}, false, time.Minute)
		}()
		time.Sleep(10 * time.Minute)
		reads := store.Counts().Reads
		take(t, store, queue.Lease{Owner: "c", Version: "x", Term: 7, Duration: time.Hour})
		if reads > 125 {
			t.Errorf("%d reads in ten minutes, want one each 5 s", reads)
		}
		time.Sleep(time.Minute)
		stop()
		<-over
		want := []Following{{Name: work, Owner: "a", Term: 1}, {Name: work, Owner: "c", Term: 7}}
		if !slices.Equal(followed, want) {
			t.Errorf("reported %+v, want %+v", followed, want)
		}
		<-first.Context().Done()
		_ = first.Finish(t.Context(), false)
	})
}

func TestLostAnswersOfTheStoreDoNotLoseTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		lose := false
		store.SetFault(func(swap bool) storeFault { // applies every second swap, but loses the response
			if swap {
				lose = !lose
			}
			if swap && lose {
				return storeFault{Err: errors.New("lost")}
			}
			return storeFault{}
		})
		held := begin(t.Context(), store, "a", false).mustHold(t)
		time.Sleep(time.Hour)
		if held.Context().Err() != nil {
			t.Fatal(context.Cause(held.Context()))
		}
		finish(t, held, true)
		if data := store.Stored(work).Data; data != workDone {
			t.Errorf("stored %q", data)
		}
		waiting, stop := context.WithCancel(t.Context())
		store.SetFault(nil)
		other := queue.Lease{Owner: "x", Version: "y", Duration: time.Hour}
		if _, _, err := store.Swap(t.Context(), work, store.Stored(work), other); err != nil {
			t.Fatal(err)
		}
		c := begin(waiting, store, "b", false)
		if stop(); !errors.Is(func() error { <-c.over; return c.err }(), context.Canceled) {
			t.Errorf("after the end of the wait: %v", c.err)
		}
	})
}
