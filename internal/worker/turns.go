package worker

// demand is a queue's interest in the next free slot of its pool.
type demand uint8

const (
	// noDemand: it has no work for another slot.
	noDemand demand = iota
	// openDemand: receives may still bring more messages than it has slots for. In strict order, lower queues wait
	// until that is known.
	openDemand
	// hasDemand: it has work for the slot, held or expected.
	hasDemand
)

// sameCredit is the difference below which two credits count as equal, because of rounding.
const sameCredit = 1e-9

// takeTurn picks one of the queues that want the turn, in proportion to their weights, or nil (smooth weighted round
// robin). Each of them gains its part of the turn as credit, and the queue with the highest credit takes and pays the
// turn. Queues that want nothing gain nothing. random returns 0 to n-1 and breaks ties, so that queues of equal
// weight have equal chances on each instance.
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
				if tied++; random(tied) == 0 { // equal chances for all tied queues
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

// firstInOrder returns the first of n queues with work for a slot, or -1 if no queue has work or one above it has
// openDemand.
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
