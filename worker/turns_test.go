package worker

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// lanesOf returns queues with these weights.
func lanesOf(weights ...int) (lanes []*lane) {
	for _, w := range weights {
		lanes = append(lanes, &lane{weight: w})
	}
	return lanes
}

// shareTurns gives out n turns among the queues that claim one and counts them.
func shareTurns(n int, lanes []*lane, claims func(*lane) bool) map[*lane]int {
	got := map[*lane]int{}
	for range n {
		got[takeTurn(lanes, claims)]++
	}
	return got
}

// Whichever queues have work, and however often that changed before, each gets its share
// of the turns, up to two, at every moment.
func TestTurnsFollowTheWeightsAtEveryMoment(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lanes := lanesOf(rapid.SliceOfN(rapid.IntRange(1, 100), 1, 8).Draw(t, "weights")...)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			claiming, total := map[*lane]bool{}, 0
			for _, l := range lanes {
				if claiming[l] = rapid.Bool().Draw(t, "claims"); claiming[l] {
					total += l.weight
				}
			}
			claims := func(l *lane) bool { return claiming[l] }
			if total == 0 {
				if takeTurn(lanes, claims) != nil {
					t.Fatal("a turn for a queue that has no work")
				}
				continue
			}
			// What the change left behind is made up for within a round.
			shareTurns(2*total, lanes, claims)
			got := map[*lane]int{}
			for n := 1; n <= 3*total; n++ {
				l := takeTurn(lanes, claims)
				if !claiming[l] {
					t.Fatal("a turn for a queue that has no work")
				}
				got[l]++
				for _, l := range lanes {
					want := float64(n*l.weight) / float64(total)
					if off := math.Abs(float64(got[l]) - want); claiming[l] && off > 2 {
						t.Fatalf("weight %d of %d has %d of the first %d turns", l.weight, total, got[l], n)
					}
				}
			}
		}
	})
}

// A queue of weight 1 in 100 gets one turn in a hundred, and not two in a row after it
// had nothing to do.
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
		name   string
		claims []claim
		want   int
	}{
		{"nobody there", nil, -1},
		{"nobody has work", []claim{unclaimed, unclaimed}, -1},
		{"the first has work", []claim{claimed, claimed, claimed}, 0},
		{"the first is found empty", []claim{unclaimed, claimed, claimed}, 1},
		{"only the last has work", []claim{unclaimed, unclaimed, claimed}, 2},
		{"the first is not known yet: nobody below gets the slot", []claim{undecided, claimed}, -1},
		{"one below an empty one is not known yet", []claim{unclaimed, undecided, claimed}, -1},
		{"what is below does not matter", []claim{unclaimed, claimed, undecided}, 1},
	} {
		if got := firstInOrder(len(tt.claims), func(i int) claim { return tt.claims[i] }); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}
