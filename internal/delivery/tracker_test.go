package delivery

import (
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/autoscale"
)

func TestInFlightTrackerKnowsTheOldestDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tracker Tracker
		if w := tracker.Work(); w != (autoscale.Work{}) {
			t.Errorf("empty: %+v", w)
		}
		first := tracker.begin(time.Now())
		time.Sleep(time.Minute)
		second := tracker.begin(time.Now())
		time.Sleep(time.Second)
		if w := tracker.Work(); w != (autoscale.Work{InWork: 2, Longest: 61 * time.Second}) {
			t.Errorf("two: %+v", w)
		}
		tracker.end(first)
		if w := tracker.Work(); w != (autoscale.Work{InWork: 1, Longest: time.Second}) {
			t.Errorf("the young one: %+v", w)
		}
		tracker.end(second)
		if w := tracker.Work(); w != (autoscale.Work{}) {
			t.Errorf("none: %+v", w)
		}
	})
}
