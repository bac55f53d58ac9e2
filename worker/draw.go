package worker

import "math"

// claim is whether one queue of a pool claimed the next free slot.
type claim uint8

const (
	// unclaimed: it has no work that could use a further slot.
	unclaimed claim = iota
	// undecided: receives under way, or about to begin, may bring more than the
	// slots that it was given already. In strict order nobody below may have
	// the slot before that is known.
	undecided
	// claimed: it has work for the slot, in hand or to be expected.
	claimed
)

// entry is one queue in a draw. Weight is at least 1 where weights count.
type entry struct {
	claim  claim
	weight int
}

// firstInOrder returns the first queue in the given order that claimed a slot,
// -1 for none: also when one above it is undecided.
func firstInOrder(queues []entry) int {
	for i, q := range queues {
		switch q.claim {
		case claimed:
			return i
		case undecided:
			return -1
		}
	}
	return -1
}

// firstByChance returns the first queue that claims a slot in an order drawn by
// weight, without putting any back; -1 when none does. random is in [0,1).
//
// The order is never written down: those without a claim may be struck from it
// before it is drawn, since that leaves the chances of the rest in the same
// proportion to each other. So the first one left is one draw among those that
// want the slot.
func firstByChance(queues []entry, random float64) int {
	total := 0
	for _, q := range queues {
		if q.claim == claimed {
			total += q.weight
		}
	}
	ticket := int(random * float64(total))
	for i, q := range queues {
		if q.claim != claimed {
			continue
		}
		if ticket < q.weight {
			return i
		}
		ticket -= q.weight
	}
	return -1
}

// evenly returns a source of numbers in [0,1) for draws. It steps by the golden
// ratio from start: each number is as likely as any other, but among some in a
// row each part of the range has its share up to two or three, where honest
// dice are off by more than its root. A queue of weight 1 in 100 so never
// waits for much more than 100 turns.
func evenly(start float64) func() float64 {
	return func() float64 {
		_, start = math.Modf(start + math.Phi)
		return start
	}
}
