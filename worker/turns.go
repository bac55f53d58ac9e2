package worker

// claim is whether one queue of a pool wants the next free slot.
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

// takeTurn gives a turn to one of the queues that claim it, in proportion to their weights;
// nil when none does. Every queue that claims the turn gets its part of it as credit, and
// the one with most credit takes the turn and pays for it (smooth weighted round robin). A
// queue that claims nothing saves up nothing.
func takeTurn(lanes []*lane, claims func(*lane) bool) (taker *lane) {
	total := 0
	for _, l := range lanes {
		if l.claims = claims(l); l.claims {
			total += l.weight
		}
	}
	for _, l := range lanes {
		if l.claims {
			l.credit += float64(l.weight) / float64(total)
			if taker == nil || l.credit > taker.credit {
				taker = l
			}
		}
	}
	if taker != nil {
		taker.credit--
	}
	return taker
}

// firstInOrder returns the first of n queues that claims a slot, -1 for none: also when
// one above it is undecided.
func firstInOrder(n int, claimOf func(int) claim) int {
	for i := range n {
		switch claimOf(i) {
		case claimed:
			return i
		case undecided:
			return -1
		}
	}
	return -1
}
