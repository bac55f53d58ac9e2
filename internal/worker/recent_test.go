package worker

import (
	"testing"
	"time"
)

func TestRecent(t *testing.T) {
	t.Parallel()
	var r recent
	start := time.Unix(1700000000, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	r.add(at(0), 9*time.Second)
	r.add(at(5), time.Second)
	r.add(at(25), 3*time.Second)
	for _, tt := range []struct {
		at, count int
		largest   time.Duration
	}{{25, 3, 9 * time.Second}, {59, 3, 9 * time.Second}, {60, 1, 3 * time.Second}, {79, 1, 3 * time.Second}, {80, 0, 0},
		{10000, 0, 0}} {
		count, largest := r.sum(at(tt.at))
		if int(count) != tt.count || largest != tt.largest {
			t.Errorf("after %d s: %d things, the largest %v; want %d and %v", tt.at, count, largest, tt.count, tt.largest)
		}
	}
	r.add(at(125), time.Second) // its bucket held something else
	if count, largest := r.sum(at(125)); count != 1 || largest != time.Second {
		t.Errorf("a new minute begins with %d things, the largest %v", count, largest)
	}
}
