package broker

import (
	"container/heap"
	"maps"
	"math"
	"slices"
	"time"
)

// On a standard queue a MessageGroupId names a tenant, and receives are fair to tenants ("fair queues" of SQS): those
// of noisy tenants come after all others. A message without one is a tenant of its own, and never noisy.
const (
	// A tenant is noisy from noisyFlights messages in flight on if these are more than a noisyShare of all, or if it
	// took more than that share of the recent processing time, from receive to delete.
	noisyFlights = 30
	noisyShare   = 0.1
	// busyHalfLife is the time after which processing time counts half; leastBusy is what a message counts at least.
	busyHalfLife = time.Minute
	leastBusy    = time.Millisecond
	// A tenant is quiet again when it has no visible messages any more, or sent none for quietAfter.
	quietAfter = 5 * time.Minute
	// After quietShare messages of quiet tenants in a row one of a noisy tenant is given out, so that it never starves.
	quietShare = 9
	// fewTenants is how many tenants memory knows before it looks which of them have no messages there.
	fewTenants = 4096
)

// tenant is a MessageGroupId of a standard queue with messages in memory.
type tenant struct {
	inFlight int
	busy     recentTime
	lastSent int64        // stamp
	noisy    *noisyTenant // nil while it is quiet
	mark     int          // of the last sweep that found messages
}

// noisyTenant is what is known of a tenant only while it is noisy.
type noisyTenant struct {
	fresh, back ring // its visible messages that memory knows
	turn        bool // the last one came from back
	given       int  // messages given out by the take under way
	index       int  // among turns; -1 outside
}

// tenantOf returns the tenant of a message; nil for one without.
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

// isNoisy reports whether the message of a row is that of a noisy tenant.
func (s *standardOrder) isNoisy(r *record) bool {
	t := s.byID[r.group]
	if t == nil {
		return false
	}
	t.lastSent = max(t.lastSent, r.sent)
	return t.noisy != nil
}

// noisyIDs returns the names of the noisy tenants.
func (s *standardOrder) noisyIDs() []string {
	ids := []string{}
	for id, t := range s.byID {
		if t.noisy != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// began notes that a flight has begun; all is how many messages of the queue are in flight now. Those that were in
// flight before the store was opened make nobody noisy: not all are counted yet.
func (s *standardOrder) began(t *tenant, all int, resumed bool) {
	t.inFlight++
	s.place(t)
	if !resumed && t.inFlight >= noisyFlights && float64(t.inFlight) > noisyShare*float64(all) {
		s.became(t)
	}
}

// ended notes that a flight has ended, after a time at a reading of the clock.
func (s *standardOrder) ended(m *message, after, now int64) {
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
	s.place(t)
	if t.busy.at(now) > noisyShare*s.busy.at(now) {
		s.became(t)
	}
}

// calm makes noisy tenants quiet: those without messages if memory knows all messages of the queue, and those that
// sent nothing for a while.
func (s *standardOrder) calm(complete bool) {
	idle := complete && len(s.noisy) > s.turns.Len()
	now := int64(0)
	if len(s.noisy) > 0 {
		now = stamp()
	}

	if len(s.noisy) == 0 || !idle && now < s.nextCalm {
		return
	}

	s.nextCalm = now + time.Minute.Milliseconds()/2
	s.noisy = slices.DeleteFunc(s.noisy, func(t *tenant) bool {
		quiet := complete && t.noisy.index < 0 || t.sentNothing(now)
		if quiet {
			s.release(t)
			s.rescan = true
		}
		return quiet
	})
}

// sentNothing reports whether a tenant has sent nothing for so long that it is quiet, whatever it has here.
func (t *tenant) sentNothing(now int64) bool { return now-t.lastSent >= quietAfter.Milliseconds() }

// endTake ends the account of one take.
func (s *standardOrder) endTake() {
	for _, t := range s.given {
		if t.noisy != nil {
			t.noisy.given = 0
			s.place(t)
		}
	}
	s.given = s.given[:0]
}

// place puts a tenant where its state says: among those that take turns if it is noisy and has messages.
func (s *standardOrder) place(t *tenant) {
	n := t.noisy
	if n == nil {
		return
	}
	switch has := n.fresh.n+n.back.n > 0; {
	case has && n.index < 0:
		heap.Push(&s.turns, t)
	case has:
		heap.Fix(&s.turns, n.index)
	case n.index >= 0:
		heap.Remove(&s.turns, n.index)
		n.index = -1
	}
}

// sweep forgets the tenants that have no messages in memory.
func (s *standardOrder) sweep(held map[int64]*message) {
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

// recentTime is a sum of durations of which older ones count less, in nanoseconds.
type recentTime struct {
	sum  float64
	when int64 // the reading at which it was the sum
}

func (r *recentTime) at(now int64) float64 {
	return r.sum * math.Exp2(-float64(now-r.when)/float64(busyHalfLife))
}

func (r *recentTime) add(duration, now int64) {
	r.sum, r.when = r.at(now)+float64(duration), now
}
