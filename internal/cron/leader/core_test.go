package leader

import (
	"testing"
	"time"

	"tendril/queue"
)

func leading(t *testing.T) (*core, time.Time) {
	t.Helper()
	now := time.Unix(1000, 0)
	c := &core{session: "me", opts: &Options{
		Owner: "node", Lease: 15 * time.Second, Renew: 5 * time.Second, Margin: 3 * time.Second,
		Random: func() float64 { return 1 },
	}}
	if s := c.decide(now); s.do != read {
		t.Fatalf("the first step is %+v, want a read", s)
	}
	c.observed(now, queue.Lease{})
	s := c.decide(now)
	if s.do != swap || !c.swapped(now, s.attempt, true, s.attempt.next) || c.term != 1 {
		t.Fatalf("not leading after %+v", s)
	}
	return c, now
}

func TestALeaseIsFreeAfterItsDuration(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	other := queue.Lease{Owner: "other", Version: "x-1", Term: 4, Duration: 10 * time.Second}
	for _, test := range []struct {
		name  string
		lease queue.Lease
		after time.Duration
		free  bool
	}{
		{"just seen", other, 0, false},
		{"a moment before its end", other, 10*time.Second - 1, false},
		{"at its end", other, 10 * time.Second, true},
		{"given back", queue.Lease{Version: "x-2", Released: true}, 0, true},
		{"never written", queue.Lease{}, 0, true},
		{"without a duration, as nobody writes it", queue.Lease{Version: "x-3"}, 15*time.Second - 1, false},
		{"ours from a lost term", queue.Lease{Version: "me-9", Duration: time.Hour}, 0, true},
		{"of one whose session begins as ours", queue.Lease{Version: "mee-9", Duration: time.Hour}, 0, false},
	} {
		c, _ := leading(t)
		c.lose()
		c.observed(now, test.lease)
		c.observed(now.Add(test.after), test.lease)
		if got := c.mayTake(); got != test.free {
			t.Errorf("%s: free is %v", test.name, got)
		}
	}
}

func TestAnExpiredLeaseIsReadBeforeItIsTaken(t *testing.T) {
	t.Parallel()
	c, now := leading(t)
	c.lose()
	other := queue.Lease{Owner: "other", Version: "x-1", Term: 4, Duration: 10 * time.Second}
	c.observed(now, other)
	c.observed(now.Add(8*time.Second), other)
	end := now.Add(10 * time.Second)
	if s := c.decide(end.Add(-1)); s.do != wait || !s.until.Equal(end) {
		t.Errorf("before its end the step is %+v, want to wait for that", s)
	}
	if s := c.decide(end); s.do != read {
		t.Errorf("at its end the step is %+v, want a read", s)
	}
	c.observed(end, queue.Lease{Owner: "third", Version: "y-1", Term: 5, Duration: 10 * time.Second})
	if s := c.decide(end); s.do != wait {
		t.Errorf("with a new holder the step is %+v, want to wait", s)
	}
	c.seen.Version, c.seenAt = "x-2", now
	if s := c.decide(end); s.do != swap || s.attempt.next.Term != 6 {
		t.Errorf("unchanged, the step is %+v, want to take term 6", s)
	}
}

// A store may not recognize a repeated swap.
func TestOwnVersionIsOwnSuccess(t *testing.T) {
	t.Parallel()
	c, start := leading(t)
	a := c.decide(start.Add(5 * time.Second)).attempt
	c.backOff(start.Add(6 * time.Second))
	if again := c.decide(start.Add(7 * time.Second)); again.attempt != a {
		t.Fatalf("after a failure the next step is %+v, want the same attempt", again)
	}
	if !c.swapped(start.Add(7*time.Second), a, false, a.next) || c.term != 1 {
		t.Error("its own version was taken for another's")
	}
	if want := start.Add(5*time.Second + 12*time.Second); !c.trusted.Equal(want) {
		t.Errorf("trusted until %s, want 12 s from the first try", c.trusted)
	}
}

func TestALostTermStaysLost(t *testing.T) {
	t.Parallel()
	c, start := leading(t)
	now := start.Add(5 * time.Second)
	a := c.decide(now).attempt
	c.lose()
	if c.swapped(now, a, true, a.next) || c.term != 0 {
		t.Errorf("term %d is held again", c.term)
	}
	s := c.decide(now)
	if s.do != swap || s.attempt.next.Term != 2 || s.attempt.old.Version != a.next.Version {
		t.Errorf("the next step is %+v, want to take term 2", s)
	}
}

func TestALostTermIsReadAnew(t *testing.T) {
	t.Parallel()
	c, start := leading(t)
	c.lose()
	if s := c.decide(start.Add(time.Second)); s.do != read {
		t.Errorf("before the next renewal was due: %+v", s)
	}
	c, start = leading(t)
	c.decide(start.Add(5 * time.Second))
	if s := c.decide(start.Add(12 * time.Second)); s.do != read || c.term != 0 || c.pending != nil {
		t.Errorf("after the trust window: %+v in term %d", s, c.term)
	}
}

func TestReadIntervalIsSpreadAndFollowsWatch(t *testing.T) {
	t.Parallel()
	c, now := leading(t)
	for _, row := range []struct {
		chance      float64
		watch, want time.Duration
		duration    time.Duration
	}{
		{chance: 0, want: 5 * time.Second},
		{chance: 1, want: 3750 * time.Millisecond},
		{chance: 0, watch: 100 * time.Second, duration: 15 * time.Second, want: 100 * time.Second},
		{chance: 1, watch: 100 * time.Second, duration: 15 * time.Second, want: 75 * time.Second},
	} {
		c.opts.Random = func() float64 { return row.chance }
		c.opts.Watch = func() time.Duration { return row.watch }
		if c.observed(now, queue.Lease{Duration: row.duration}); c.nextRead.Sub(now) != row.want {
			t.Errorf("chance %v: an instance that can wait %s pauses for %s, want %s",
				row.chance, row.watch, c.nextRead.Sub(now), row.want)
		}
	}
}

func TestBackoffGrowsToItsLimit(t *testing.T) {
	t.Parallel()
	c, now := leading(t)
	var got []time.Duration
	for range 5 {
		got = append(got, c.backOff(now))
	}
	c.lose()
	for range 30 {
		c.backOff(now)
	}
	got = append(got, c.backOff(now))
	want := []time.Duration{200, 400, 800, 1000, 1000, 5000}
	for i := range want {
		if got[i] != want[i]*time.Millisecond {
			t.Errorf("pause %d is %s, want %d ms", i, got[i], want[i])
		}
	}
	if s := c.decide(now); s.do != wait || !s.until.Equal(now.Add(5*time.Second)) {
		t.Errorf("within the pause the step is %+v", s)
	}
	c.opts.Random = func() float64 { return 0 }
	if d := c.backOff(now); d != 2500*time.Millisecond {
		t.Errorf("the shortest of the longest pauses is %s", d)
	}
}
