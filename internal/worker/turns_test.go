package worker

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func lanesOf(weights ...int) (lanes []*lane) {
	for _, w := range weights {
		lanes = append(lanes, &lane{weight: w})
	}
	return lanes
}

func shareTurns(n int, lanes []*lane, wants func(*lane) bool) map[*lane]int {
	got := map[*lane]int{}
	for range n {
		got[takeTurn(lanes, wants, rand.IntN)]++
	}
	return got
}

func TestTurnsFollowTheWeightsAtEveryMoment(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lanes := lanesOf(rapid.SliceOfN(rapid.IntRange(1, 100), 1, 8).Draw(t, "weights")...)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			wanting, total := map[*lane]bool{}, 0
			for _, l := range lanes {
				if wanting[l] = rapid.Bool().Draw(t, "wants"); wanting[l] {
					total += l.weight
				}
			}
			wants := func(l *lane) bool { return wanting[l] }
			if total == 0 {
				if takeTurn(lanes, wants, rand.IntN) != nil {
					t.Fatal("a turn for a queue that has no work")
				}
				continue
			}
			shareTurns(2*total, lanes, wants)
			got := map[*lane]int{}
			for n := 1; n <= 3*total; n++ {
				l := takeTurn(lanes, wants, rand.IntN)
				if !wanting[l] {
					t.Fatal("a turn for a queue that has no work")
				}
				got[l]++
				for _, l := range lanes {
					want := float64(n*l.weight) / float64(total)
					if off := math.Abs(float64(got[l]) - want); wanting[l] && off > 2 {
						t.Fatalf("weight %d of %d has %d of the first %d turns", l.weight, total, got[l], n)
					}
				}
			}
		}
	})
}

func TestEqualWeightsAreInRandomOrder(t *testing.T) {
	t.Parallel()
	const starts = 60_000
	random := rand.New(rand.NewPCG(1, 2)).IntN
	all := func(*lane) bool { return true }
	orders := map[[3]int]int{}
	for range starts {
		lanes := lanesOf(1, 1, 1)
		var order [3]int
		for turn := range order {
			order[turn] = slices.Index(lanes, takeTurn(lanes, all, random))
		}
		orders[order]++
	}
	if len(orders) != 6 {
		t.Fatalf("orders of the first turns: %v, want the 6 in which each queue has one", orders)
	}
	const p = 1.0 / 6
	allowed := 5 * math.Sqrt(starts*p*(1-p))
	for order, n := range orders {
		if math.Abs(float64(n)-starts*p) > allowed {
			t.Errorf("order %v: %d of %d starts, want %.0f, give or take %.0f", order, n, starts, starts*p, allowed)
		}
	}
	lanes := lanesOf(2, 2, 2)
	firsts := map[int]int{}
	for round := range 1000 {
		for turn := range lanes {
			if i := slices.Index(lanes, takeTurn(lanes, all, random)); turn == 0 {
				firsts[i]++
			}
		}
		for i, l := range lanes {
			if math.Abs(l.credit) > sameCredit {
				t.Fatalf("queue %d is owed %g turns after round %d", i, l.credit, round)
			}
		}
	}
	for i, n := range firsts {
		if n < 260 || n > 410 {
			t.Errorf("queue %d had the first turn of %d of 1000 rounds, want about a third", i, n)
		}
	}
}

func TestIdleQueueSavesUpNoTurns(t *testing.T) {
	t.Parallel()
	lanes := lanesOf(99, 1)
	shareTurns(1000, lanes, func(l *lane) bool { return l == lanes[0] })
	if got := shareTurns(100, lanes, func(*lane) bool { return true })[lanes[1]]; got < 1 || got > 2 {
		t.Errorf("after 1000 turns without work it got %d of 100", got)
	}
}

func TestStrictOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		demands []demand
		want    int
	}{
		{"no queue", nil, -1},
		{"no queue has work", []demand{noDemand, noDemand}, -1},
		{"the first has work", []demand{hasDemand, hasDemand, hasDemand}, 0},
		{"the first is found empty", []demand{noDemand, hasDemand, hasDemand}, 1},
		{"only the last has work", []demand{noDemand, noDemand, hasDemand}, 2},
		{"the first is unknown: no lower one gets the slot", []demand{openDemand, hasDemand}, -1},
		{"one below an empty one is not known yet", []demand{noDemand, openDemand, hasDemand}, -1},
		{"what is below does not matter", []demand{noDemand, hasDemand, openDemand}, 1},
	} {
		lanes := lanesOf(make([]int, len(tt.demands))...)
		demandOf := func(l *lane) demand { return tt.demands[slices.Index(lanes, l)] }
		if got := slices.Index(lanes, firstInOrder(lanes, demandOf)); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}
