package leader

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func openGate(t *testing.T) (*gate, *[]string) {
	t.Helper()
	reported := &[]string{}
	g := &gate{standstill: time.Second, wall: time.Now, changed: make(chan struct{}), lastTick: time.Now(),
		began: func(term int64) { *reported = append(*reported, fmt.Sprint("began ", term)) },
		lost: func(term int64, reason string) {
			*reported = append(*reported, fmt.Sprint("lost ", term, ": ", reason))
		},
	}
	if !g.open(tryOf(1), time.Now().Add(12*time.Second)) {
		t.Fatal("the gate did not open")
	}
	return g, reported
}

func tryOf(term int64) *attempt {
	return &attempt{next: queue.Lease{Term: term}, start: time.Now(), wall: time.Now()}
}

func TestGateClosesWhenTheProcessStoodStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, reported := openGate(t)
		time.Sleep(1900 * time.Millisecond) // a tick is 0.9 s late
		if _, ok := g.currentTerm(); !ok {
			t.Errorf("closed after a tick that was a little late: %v", *reported)
		}
		g.tick()
		time.Sleep(2 * time.Second)
		if _, ok := g.currentTerm(); !ok {
			t.Errorf("closed after the longest time between two ticks: %v", *reported)
		}
		time.Sleep(100 * time.Millisecond)
		if _, ok := g.currentTerm(); ok {
			t.Error("open although no tick came for 2.1 s")
		}
		g.tick()
		if _, ok := g.currentTerm(); ok {
			t.Error("a term that was closed was opened by a tick")
		}
		if want := "[began 1 lost 1: the process was suspended for 2.1s]"; fmt.Sprint(*reported) != want {
			t.Errorf("told %v, want %s", *reported, want)
		}
	})
}

func TestGateClosesWhenTheClocksDiffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, by := range []time.Duration{time.Second, -time.Second} {
			g, _ := openGate(t)
			g.wall = func() time.Time { return time.Now().Add(by) }
			if _, ok := g.currentTerm(); !ok {
				t.Errorf("closed by a clock that was set by %s", by)
			}
			g.wall = func() time.Time { return time.Now().Add(by + by/1000) }
			if _, ok := g.currentTerm(); ok {
				t.Errorf("open with a clock that was set by more than %s", by)
			}
		}
	})
}

func TestGateNeverReopensForATerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, reported := openGate(t)
		g.close("enough")
		g.close("twice")
		if g.open(tryOf(1), time.Now().Add(time.Minute)) {
			t.Error("a closed term was opened again")
		}
		if !g.open(tryOf(2), time.Now().Add(time.Minute)) {
			t.Error("a new term was not let in")
		}
		if term, ok := g.currentTerm(); term != 2 || !ok {
			t.Errorf("holds() = %d, %v", term, ok)
		}
		g.stop()
		if g.open(tryOf(3), time.Now().Add(time.Minute)) {
			t.Error("a stopped gate was opened")
		}
		if want := "[began 1 lost 1: enough began 2 lost 2: stopped]"; fmt.Sprint(*reported) != want {
			t.Errorf("told %v, want %s", *reported, want)
		}
	})
}

func TestGateStaysClosedAfterASuspendDuringTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _ := openGate(t)
		a := tryOf(2)
		a.wall = a.wall.Add(-time.Minute)
		if g.open(a, time.Now().Add(12*time.Second)) {
			t.Error("opened")
		}
		if g.open(tryOf(2), time.Now().Add(12*time.Second)) {
			t.Error("the distrusted term was opened after all")
		}
	})
}

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events, called := newDispatcher(), 0
		for range 2 * maxQueuedEvents {
			events.dispatch(func() { called++ })
		}
		go events.run()
		events.stop(time.Second)
		if called != maxQueuedEvents {
			t.Errorf("%d events were reported, want %d", called, maxQueuedEvents)
		}
	})
}
