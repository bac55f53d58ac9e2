package worker

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestFirstInOrder(t *testing.T) {
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
		var queues []entry
		for _, s := range tt.claims {
			queues = append(queues, entry{claim: s, weight: 1})
		}
		if got := firstInOrder(queues); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestFirstByChance(t *testing.T) {
	t.Parallel()
	queues := func(claims ...claim) []entry {
		weights := []int{3, 2, 1}
		var l []entry
		for i, s := range claims {
			l = append(l, entry{s, weights[i]})
		}
		return l
	}
	for _, tt := range []struct {
		name   string
		queues []entry
		random float64
		want   int
	}{
		{"nobody there", nil, 0, -1},
		{"nobody has work", queues(unclaimed, unclaimed, undecided), 0.9, -1},
		{"first ticket", queues(claimed, claimed, claimed), 0, 0},
		{"last ticket of the first", queues(claimed, claimed, claimed), 0.499, 0},
		{"first ticket of the second", queues(claimed, claimed, claimed), 0.5, 1},
		{"last ticket of the second", queues(claimed, claimed, claimed), 0.833, 1},
		{"last ticket", queues(claimed, claimed, claimed), 0.9999999, 2},
		{"without the first: two to one", queues(unclaimed, claimed, claimed), 0.66, 1},
		{"without the first, the last third", queues(unclaimed, claimed, claimed), 0.67, 2},
		{"an undecided one does not hold up chance", queues(undecided, unclaimed, claimed), 0, 2},
	} {
		if got := firstByChance(tt.queues, tt.random); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

// drawnOrder writes the order down that firstByChance only looks into: by
// weight, without putting any back.
func drawnOrder(weights []int, r *rand.Rand) []int {
	left := map[int]int{}
	total := 0
	for i, w := range weights {
		left[i] = w
		total += w
	}
	var order []int
	for total > 0 {
		ticket := r.IntN(total)
		for i := range weights {
			if ticket < left[i] {
				order = append(order, i)
				total -= left[i]
				delete(left, i)
				break
			}
			ticket -= left[i]
		}
	}
	return order
}

// The first queue with work of a written-down order and the one that is drawn
// have the same chances, whichever queues have work.
func TestChanceIsThatOfAWholeOrder(t *testing.T) {
	t.Parallel()
	const n = 20000
	weights := []int{3, 2, 1, 1}
	r := rand.New(rand.NewPCG(1, 2))
	for mask := 1; mask < 1<<len(weights); mask++ {
		queues := make([]entry, len(weights))
		for i := range queues {
			queues[i] = entry{weight: weights[i]}
			if mask&(1<<i) != 0 {
				queues[i].claim = claimed
			}
		}
		var whole, drawn [4]float64
		for range n {
			for _, i := range drawnOrder(weights, r) {
				if queues[i].claim == claimed {
					whole[i]++
					break
				}
			}
			drawn[firstByChance(queues, r.Float64())]++
		}
		chi := 0.0
		for i := range weights {
			if whole[i]+drawn[i] > 0 {
				chi += (whole[i] - drawn[i]) * (whole[i] - drawn[i]) / (whole[i] + drawn[i])
			}
			if queues[i].claim != claimed && drawn[i] > 0 {
				t.Errorf("%04b: queue %d has no work and was drawn", mask, i)
			}
		}
		// Three degrees of freedom: beyond 25 once in 65,000.
		if chi > 25 || math.IsNaN(chi) {
			t.Errorf("%04b: a whole order gives %v, one draw %v (chi-square %.1f)", mask, whole, drawn, chi)
		}
	}
}

func TestFirstChecksFollowTheWeights(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, tt := range []struct {
		weights []int
		want    []float64
	}{{[]int{3, 2, 1}, []float64{50, 100. / 3, 50. / 3}}, {[]int{1, 1, 1}, []float64{100. / 3, 100. / 3, 100. / 3}},
		{[]int{5}, []float64{100}}} {
		const n = 100000
		queues := make([]entry, len(tt.weights))
		for i, w := range tt.weights {
			queues[i] = entry{claimed, w}
		}
		got := make([]int, len(queues))
		for range n {
			got[firstByChance(queues, r.Float64())]++
		}
		for i, want := range tt.want {
			if share := 100 * float64(got[i]) / n; math.Abs(share-want) > 0.7 {
				t.Errorf("weights %v: queue %d was first in %.2f %%, want %.2f", tt.weights, i, share, want)
			}
		}
	}
}
