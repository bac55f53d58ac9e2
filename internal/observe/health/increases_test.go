package health

import (
	"slices"
	"testing"
	"time"
)

func TestIncreasesOfTheLastFiveMinutes(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		name   string
		before int64
		values []int64
		want   []int64
	}{
		{"an increase counts from the first call", 0, []int64{2, 2, 3}, []int64{2, 2, 3}},
		{"the value before the first call does not count", 7, []int64{7, 8, 8}, []int64{0, 1, 1}},
		{"an increase counts for five minutes", 0, []int64{1, 1, 1, 1, 1, 1, 2, 2}, []int64{1, 1, 1, 1, 1, 0, 1, 1}},
		{"a counter that was reset counts from 0", 0, []int64{4, 0, 1, 1, 1, 1, 1}, []int64{4, 4, 5, 5, 5, 1, 1}},
	} {
		r := increases{}
		var got []int64
		for i, v := range tt.values {
			got = append(got, r.observe("one", tt.before, v, now.Add(time.Duration(i)*time.Minute)))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if len(r["one"].marks) > 8 {
			t.Errorf("%s: it keeps %d marks", tt.name, len(r["one"].marks))
		}
	}
}

func TestIncreaseCountsUntilItIsFiveMinutesOld(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	r := increases{}
	for _, tt := range []struct {
		after       time.Duration
		value, want int64
	}{{0, 0, 0}, {time.Second, 1, 1}, {300 * time.Second, 1, 1}, {301 * time.Second, 1, 0}} {
		if got := r.observe("one", 0, tt.value, start.Add(tt.after)); got != tt.want {
			t.Errorf("after %v it rose by %d, want %d", tt.after, got, tt.want)
		}
	}
}
