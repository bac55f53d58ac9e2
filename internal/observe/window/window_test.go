package window

import (
	"testing"
	"time"
)

func TestWindowForgetsInSteps(t *testing.T) {
	t.Parallel()
	w := New[int](10*time.Second, 6)
	start := time.Unix(1700000000, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	sum := func(s int) (n int) {
		for b := range w.Recent(at(s)) {
			n += *b
		}
		return n
	}
	if n := sum(0); n != 0 {
		t.Errorf("a new window has %d things, want none", n)
	}
	*w.At(at(0))++
	*w.At(at(5))++
	*w.At(at(25))++
	for _, tt := range []struct{ at, want int }{{25, 3}, {59, 3}, {60, 1}, {79, 1}, {80, 0}, {10000, 0}, {-1, 0}} {
		if got := sum(tt.at); got != tt.want {
			t.Errorf("after %d s: %d things, want %d", tt.at, got, tt.want)
		}
	}
	*w.At(at(125))++
	if got := sum(125); got != 1 {
		t.Errorf("a new minute starts with %d things, want 1", got)
	}
	if w.At(at(-600)) != nil {
		t.Error("a bucket was used again for a time before the window")
	}
	if got := sum(125); got != 1 {
		t.Errorf("after the clock was set back there are %d things, want 1", got)
	}
	for range w.Recent(at(125)) {
		break
	}
}
