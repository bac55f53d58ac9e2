package broker

import (
	"container/heap"
	"maps"
	"math"
	"slices"
	"time"
)

// On a standard queue, a MessageGroupId names a tenant. As in SQS fair queues, messages of noisy tenants come last.
// Messages without a group are never noisy.
const (
	// A tenant becomes noisy with at least noisyFlights messages in flight and more than noisyShare of all, or with
	// more than noisyShare of the recent processing time.
	noisyFlights = 30
	noisyShare   = 0.1
	// leastBusy is the minimum processing time counted per message. Processing time counts half after busyHalfLife.
	busyHalfLife = time.Minute
	leastBusy    = time.Millisecond
	// A noisy tenant becomes quiet once it has no visible messages or has sent none for quietAfter.
	quietAfter = 5 * time.Minute
	quietCheck = 30 * time.Second
	// After quietShare messages of quiet tenants, a noisy one gets a turn, so that it never starves.
	quietShare = 9
	// Inactive tenants are only removed from memory beyond fewTenants.
	fewTenants = 4096
)

type tenant struct {
	inFlight int
	busy     recentTime
	lastSent int64        // stamp
	noisy    *noisyTenant // nil while quiet
	mark     int
}

type noisyTenant struct {
	fresh, back ring
	turn        bool // the previous message came from back
	given       int
	index       int
}

func (s *standardOrder) tenantOf(r *record) *tenant {
	if r.group == "" {
		return nil
	}
	t := s.byID[r.group]
	if t == nil {
		t = &tenant{}
		s.byID[r.group] = t
	}
	t.lastSent = max(t.lastSent, r.sent)
	return t
}

func (s *standardOrder) noteSent(r *record) {
	t := s.byID[r.group]
	if t == nil {
		return
	}
	sent := r.sent
	if scheduled(r.sent, r.due) {
		sent = stamp() // r.sent is in the future
	}
	t.lastSent = max(t.lastSent, sent)
}

func (s *standardOrder) isNoisy(tenant string) bool {
	t := s.byID[tenant]
	return t != nil && t.noisy != nil
}

func (s *standardOrder) noisyIDs() []string {
	ids := []string{}
	for id, t := range s.byID {
		if t.noisy != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// all is the queue's number of messages in flight. A resumed message does not make its tenant noisy, because all is
// still incomplete.
func (s *standardOrder) flightStarted(t *tenant, all int, resumed bool) {
	t.inFlight++
	s.updateTurn(t)
	if !resumed && t.inFlight >= noisyFlights && float64(t.inFlight) > noisyShare*float64(all) {
		s.makeNoisy(t)
	}
}

func (s *standardOrder) flightEnded(m *message, after, now int64) {
	if len(s.byID) == 0 {
		return
	}
	after = max(after, int64(leastBusy))
	s.busy.add(after, now)
	t := m.tenant
	if t == nil {
		return
	}
	t.inFlight--
	t.busy.add(after, now)
	s.updateTurn(t)
	if t.busy.at(now) > noisyShare*s.busy.at(now) {
		s.makeNoisy(t)
	}
}

// quietIdleTenants makes quiet the tenants that have sent nothing for quietAfter. If complete, which means that
// memory holds all visible messages, it also makes quiet the tenants without visible messages.
func (s *standardOrder) quietIdleTenants(complete bool) {
	if len(s.noisy) == 0 {
		return
	}
	now := stamp()
	someIdle := complete && len(s.noisy) > s.turns.Len()
	if !someIdle && now < s.nextQuietCheck {
		return
	}

	s.nextQuietCheck = now + quietCheck.Milliseconds()
	s.noisy = slices.DeleteFunc(s.noisy, func(t *tenant) bool {
		idle := complete && t.noisy.index < 0
		if !idle && !t.sentNothing(now) {
			return false
		}
		s.makeQuiet(t)
		s.rescan = true
		return true
	})
}

func (t *tenant) sentNothing(now int64) bool { return now-t.lastSent >= quietAfter.Milliseconds() }

func (s *standardOrder) endTake() {
	for _, t := range s.given {
		if t.noisy != nil {
			t.noisy.given = 0
			s.updateTurn(t)
		}
	}
	s.given = s.given[:0]
}

// updateTurn must follow each change of a tenant's messages or number in flight.
func (s *standardOrder) updateTurn(t *tenant) {
	n := t.noisy
	if n == nil {
		return
	}
	hasMessages := n.fresh.n+n.back.n > 0
	switch {
	case hasMessages && n.index < 0:
		heap.Push(&s.turns, t)
	case hasMessages:
		heap.Fix(&s.turns, n.index)
	case n.index >= 0:
		heap.Remove(&s.turns, n.index)
		n.index = -1
	}
}

func (s *standardOrder) sweepTenants(held map[int64]*message) {
	s.mark++
	mark := func(m *message) {
		if m.tenant != nil {
			m.tenant.mark = s.mark
		}
	}
	for _, m := range held {
		mark(m)
	}

	for _, r := range []*ring{&s.main, &s.late, &s.back} {
		for i := range r.n {
			mark(r.items[(r.head+i)%len(r.items)])
		}
	}

	maps.DeleteFunc(s.byID, func(_ string, t *tenant) bool { return t.noisy == nil && t.mark != s.mark })
	s.sweepAt = max(fewTenants, 2*len(s.byID))
}

// recentTime is an exponentially decaying sum in nanoseconds.
type recentTime struct {
	sum  float64
	when int64
}

func (r *recentTime) at(now int64) float64 {
	return r.sum * math.Exp2(-float64(now-r.when)/float64(busyHalfLife))
}

func (r *recentTime) add(duration, now int64) {
	r.sum = r.at(now) + float64(duration)
	r.when = now
}
