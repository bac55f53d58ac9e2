package limit

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNearestTo(t *testing.T) {
	t.Parallel()
	var l deliveryList
	if got := l.nearestTo(0); got != -1 {
		t.Errorf("nearestTo of an empty list = %d, want -1", got)
	}
	for _, at := range []time.Duration{10, 20, 20, 20, 40} {
		l.add(delivery{startedAt: at})
	}
	for at, want := range map[time.Duration]int{-5: 0, 10: 0, 14: 0, 16: 1, 20: 1, 29: 3, 31: 4, 40: 4, 99: 4} {
		if got := l.nearestTo(at); got != want {
			t.Errorf("nearestTo(%d) = %d, want %d", at, got, want)
		}
	}
}

// TestDeliveryListKeepsItsOrder compares the list with a plain slice.
func TestDeliveryListKeepsItsOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l deliveryList
		var plain []delivery
		var now time.Duration
		var number uint32
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "add?") < 6 {
				now += time.Duration(rapid.IntRange(0, 3).Draw(t, "gap"))
				number++
				l.add(delivery{startedAt: now, generation: number})
				plain = append(plain, delivery{startedAt: now, generation: number})
				continue
			}
			wanted := time.Duration(rapid.IntRange(-2, int(now)+2).Draw(t, "wanted"))
			i := l.nearestTo(wanted)
			if i < 0 {
				if len(plain) > 0 {
					t.Fatalf("found none of %d", len(plain))
				}
				continue
			}
			removed := l.remove(i)
			for _, other := range plain {
				if (other.startedAt - wanted).Abs() < (removed.startedAt - wanted).Abs() {
					t.Fatalf("nearest to %d is %d, got %d", wanted, other.startedAt, removed.startedAt)
				}
			}
			plain = slices.DeleteFunc(plain, func(d delivery) bool { return d == removed })
			if !slices.Equal(plain, l.list[l.head:]) || l.len() != len(plain) {
				t.Fatalf("have %v, want %v", l.list[l.head:], plain)
			}
		}
	})
}

// TestBatchesThatStartTogetherEndInAnyOrder: whichever batch a result is counted
// for, the list never holds fewer deliveries than are in work.
func TestBatchesThatStartTogetherEndInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l deliveryList
		sizes := rapid.SliceOfN(rapid.IntRange(1, 10), 1, 8).Draw(t, "sizes")
		for _, n := range sizes {
			l.add(delivery{startedAt: 7, pending: int32(n)})
		}
		for len(sizes) > 0 {
			which := rapid.IntRange(0, len(sizes)-1).Draw(t, "which")
			for range sizes[which] {
				if i := l.nearestTo(7); l.recordResult(i, resultOK, true) {
					l.remove(i)
				}
			}
			sizes = slices.Delete(sizes, which, which+1)
			if l.len() < len(sizes) {
				t.Fatalf("the list holds %d, in work are %d", l.len(), len(sizes))
			}
		}
		if l.len() != 0 || l.batches != 0 {
			t.Fatalf("%d deliveries and %d batches left at the end", l.len(), l.batches)
		}
	})
}

func TestDeliveryListReusesItsSpace(t *testing.T) {
	t.Parallel()
	var l deliveryList
	for i := range 100_000 {
		l.add(delivery{startedAt: time.Duration(i)})
		if l.len() > 20 {
			l.remove(l.nearestTo(0))
		}
	}
	if cap(l.list) > 200 {
		t.Errorf("20 deliveries take the space of %d", cap(l.list))
	}
}
