package worker

// demand says whether a queue of a pool wants the next free slot.
type demand uint8

const (
	// noDemand: it has no work that could use a further slot.
	noDemand demand = iota
	// openDemand: receives under way, or about to begin, may bring more than the
	// slots that it was given already. In strict order no queue below may have
	// the slot before that is known.
	openDemand
	// hasDemand: it has work for the slot, held here or expected.
	hasDemand
)

// sameCredit is the difference below which two credits are the same: sums of fractions.
const sameCredit = 1e-9

// takeTurn gives a turn to one of the queues that want it, in proportion to their weights;
// nil when none does. Every queue that wants the turn gets its part of it as credit, and
// the one with most credit takes the turn and pays for it (smooth weighted round robin). A
// queue that wants nothing saves up nothing. random, which returns 0 to n-1, chooses among those
// with the same credit: queues of one weight have the same chance of each turn, on each instance.
func takeTurn(lanes []*lane, wants func(*lane) bool, random func(n int) int) (taker *lane) {
	total, tied := 0, 0
	for _, l := range lanes {
		if l.wants = wants(l); l.wants {
			total += l.weight
		}
	}

	for _, l := range lanes {
		if l.wants {
			l.credit += float64(l.weight) / float64(total)
			switch {
			case taker == nil || l.credit > taker.credit+sameCredit:
				taker, tied = l, 1
			case l.credit > taker.credit-sameCredit:
				if tied++; random(tied) == 0 { // each of the tied ones with the same chance
					taker = l
				}
			}
		}
	}

	if taker != nil {
		taker.credit--
	}
	return taker
}

// firstInOrder returns the first of n queues that has work for a slot, -1 if there is none, or if the demand of
// one above it is open.
func firstInOrder(n int, demandOf func(int) demand) int {
	for i := range n {
		switch demandOf(i) {
		case hasDemand:
			return i
		case openDemand:
			return -1
		}
	}
	return -1
}
