package worker

import (
	"testing"
	"time"
)

func TestClockNoticesStandstill(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		mono, wall  time.Duration
		gap, hidden time.Duration
	}{
		{"on time", time.Second, time.Second, 0, 0},
		{"a little late", 2 * time.Second, 2 * time.Second, 0, 0},
		{"stopped by a signal", time.Minute, time.Minute, time.Minute, 0},
		{"suspended with the machine", time.Second, 10 * time.Minute, 10 * time.Minute, 10*time.Minute - time.Second},
		{"both", time.Minute, time.Hour, time.Hour, 59 * time.Minute},
		{"wall clock set back", time.Second, -time.Hour, 0, 0},
		{"wall clock slewed", time.Second, 1050 * time.Millisecond, 0, 0},
		{"an older time", -time.Second, -time.Second, 0, 0},
	}
	for _, tt := range tests {
		c := clock{interval: time.Second, last: time.Now()}
		s := c.advance(c.last.Add(tt.mono), tt.mono, tt.wall)
		if s.length() != tt.gap || s.hidden != tt.hidden {
			t.Errorf("%s: got %v, %v, want %v, %v", tt.name, s.length(), s.hidden, tt.gap, tt.hidden)
		}
	}
	var c clock
	if s := c.tick(time.Now()); s != (stall{}) || c.last.IsZero() {
		t.Error("the first tick only starts the clock")
	}
	last := c.last
	if c.tick(last.Add(-time.Second)); c.last != last {
		t.Error("an older time must not set the clock back")
	}
}

func TestVisibilityTimeoutStartsBeforeTheResponse(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	tests := []struct {
		name   string
		stall  stall
		now    int
		travel time.Duration
		want   int
	}{
		{"quick answer", stall{}, 0, time.Second, 0},
		{"after a long poll: the travel time ago", stall{}, 20, 2 * time.Second, 18},
		{"never before the call", stall{}, 1, 5 * time.Second, 0},
		{"stall during the call: the response may have arrived at its start", stall{from: at(5), until: at(60)}, 60, time.Second,
			5},
		{"stall before the call", stall{from: at(-60), until: at(-50)}, 20, time.Second, 19},
		{"stall that started before the call", stall{from: at(-60), until: at(10)}, 10, time.Second, 0},
		{"suspended meanwhile", stall{from: at(5), until: at(6), hidden: 100 * time.Second}, 6, time.Second, -95},
	}
	for _, tt := range tests {
		c := clock{stall: tt.stall}
		if got := c.earliestHidden(start, at(tt.now), tt.travel); !got.Equal(at(tt.want)) {
			t.Errorf("%s: got %v after the call, want %d s", tt.name, got.Sub(start), tt.want)
		}
	}
}
