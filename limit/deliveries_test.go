package limit

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTheNearestDeliveryIsMeant(t *testing.T) {
	t.Parallel()
	var f deliveryList
	if got := f.nearestTo(0); got != -1 {
		t.Errorf("nearest of none = %d, want -1", got)
	}
	for _, at := range []time.Duration{10, 20, 20, 20, 40} {
		f.add(delivery{at: at})
	}
	for at, want := range map[time.Duration]int{-5: 0, 10: 0, 14: 0, 16: 1, 20: 1, 29: 3, 31: 4, 40: 4, 99: 4} {
		if got := f.nearestTo(at); got != want {
			t.Errorf("nearest(%d) = %d, want %d", at, got, want)
		}
	}
}

// TestFlightsKeepTheirOrder compares the list with a plain one.
func TestFlightsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var f deliveryList
		var plain []delivery
		var at time.Duration
		var number uint32
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "add?") < 6 {
				at += time.Duration(rapid.IntRange(0, 3).Draw(t, "gap"))
				number++
				f.add(delivery{at: at, generation: number})
				plain = append(plain, delivery{at: at, generation: number})
				continue
			}
			asked := time.Duration(rapid.IntRange(-2, int(at)+2).Draw(t, "asked"))
			i := f.nearestTo(asked)
			if i < 0 {
				if len(plain) > 0 {
					t.Fatalf("none found of %d", len(plain))
				}
				continue
			}
			gone := f.remove(i)
			for _, other := range plain {
				if (other.at - asked).Abs() < (gone.at - asked).Abs() {
					t.Fatalf("asked for %d, got %d although there was %d", asked, gone.at, other.at)
				}
			}
			plain = slices.DeleteFunc(plain, func(a delivery) bool { return a == gone })
			if !slices.Equal(plain, f.list[f.head:]) || f.len() != len(plain) {
				t.Fatalf("have %v, want %v", f.list[f.head:], plain)
			}
		}
	})
}

// TestBatchesOfOneTime: whichever of them a result belongs to, no more may seem to
// have ended than did.
func TestBatchesOfOneTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var f deliveryList
		sizes := rapid.SliceOfN(rapid.IntRange(1, 10), 1, 8).Draw(t, "sizes")
		for _, n := range sizes {
			f.add(delivery{at: 7, pending: int32(n)})
		}
		for len(sizes) > 0 {
			which := rapid.IntRange(0, len(sizes)-1).Draw(t, "which")
			for range sizes[which] {
				if i := f.nearestTo(7); f.recordResult(i, resultOK, true) {
					f.remove(i)
				}
			}
			sizes = slices.Delete(sizes, which, which+1)
			if f.len() < len(sizes) {
				t.Fatalf("%d seem to be in work, %d are", f.len(), len(sizes))
			}
		}
		if f.len() != 0 || f.batches != 0 {
			t.Fatalf("%d in work and %d batches after all", f.len(), f.batches)
		}
	})
}

// TestFlightsReuseTheirSpace: first in, first out must not grow the list.
func TestFlightsReuseTheirSpace(t *testing.T) {
	t.Parallel()
	var f deliveryList
	for i := range 100_000 {
		f.add(delivery{at: time.Duration(i)})
		if f.len() > 20 {
			f.remove(f.nearestTo(0))
		}
	}
	if cap(f.list) > 200 {
		t.Errorf("20 deliveries take the space of %d", cap(f.list))
	}
}
