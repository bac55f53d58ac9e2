package worker

// demand is a queue's interest in the next free slot.
type demand uint8

const (
	// noDemand means that it has no work for another slot.
	noDemand demand = iota
	// openDemand means that receives may still bring messages for the slot. In strict order, lower queues wait for
	// that.
	openDemand
	// hasDemand means that it has work for the slot, held or expected.
	hasDemand
)

// sameCredit is the tolerance for equal credits.
const sameCredit = 1e-9

// takeTurn picks one of the queues that want the turn by smooth weighted round robin, or nil: each gains its part of
// the turn as credit, and the one with the highest credit pays for the turn. Queues that want nothing gain nothing.
// random breaks ties, so that queues of equal weight have equal chances on each instance.
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

// firstInOrder returns the first queue with work, or -1 if none has work or one above it has openDemand.
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
