package worker

type demand uint8

const (
	noDemand demand = iota
	// openDemand means that open receives may still return messages for the slot. In strict order, lower queues wait
	// for them.
	openDemand
	hasDemand
)

// sameCredit is the difference below which two credits count as equal.
const sameCredit = 1e-9

// takeTurn picks a queue that wants the turn by smooth weighted round robin, or returns nil. All of them gain credit
// in proportion to their weights, and the one with the most pays for the turn. random breaks ties, so that queues of
// equal weight have equal chances on each instance.
func takeTurn(lanes []*lane, wants func(*lane) bool, random func(n int) int) (taker *lane) {
	total, tied := 0, 0
	for _, l := range lanes {
		if l.wantsTurn = wants(l); l.wantsTurn {
			total += l.weight
		}
	}

	for _, l := range lanes {
		if !l.wantsTurn {
			continue
		}
		l.credit += float64(l.weight) / float64(total)
		switch {
		case taker == nil || l.credit > taker.credit+sameCredit:
			taker, tied = l, 1
		case l.credit > taker.credit-sameCredit:
			tied++
			if random(tied) == 0 {
				taker = l
			}
		}
	}

	if taker != nil {
		taker.credit--
	}
	return taker
}

func firstInOrder(lanes []*lane, demandOf func(*lane) demand) *lane {
	for _, l := range lanes {
		switch demandOf(l) {
		case hasDemand:
			return l
		case openDemand:
			return nil
		}
	}
	return nil
}
