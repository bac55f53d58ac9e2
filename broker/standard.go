package broker

// standardOrder delivers roughly the oldest messages first. Messages received before alternate with fresh ones, so
// neither starves. Messages of noisy tenants come last.
type standardOrder struct {
	main ring // fresh, in key order
	late ring // fresh, out of key order: formerly delayed or of a noisy tenant
	back ring
	turn bool // the previous message of a quiet tenant came from back

	byID           map[string]*tenant
	noisy          []*tenant
	turns          indexed[*tenant] // noisy tenants with messages, fewest in flight first
	parkedFresh    int
	given          []*tenant // noisy tenants whose messages the current take has returned
	quietInRow     int       // messages of quiet tenants since the last one of a noisy tenant
	busy           recentTime
	nextQuietCheck int64 // stamp
	rescan         bool  // messages of formerly noisy tenants must be read again
	sweepAt        int
	mark           int
}

func newStandard() *standardOrder {
	return &standardOrder{byID: map[string]*tenant{}, sweepAt: fewTenants, turns: indexed[*tenant]{
		index:  func(t *tenant) *int { return &t.noisy.index },
		before: func(a, b *tenant) bool { return a.inFlight+a.noisy.given < b.inFlight+b.noisy.given },
	}}
}

func (s *standardOrder) add(m *message) {
	m.queued = true
	switch {
	case m.tenant != nil && m.tenant.noisy != nil:
		s.park(m)
	case m.due != 0:
		s.late.push(m)
	default:
		s.main.push(m)
	}
}

func (s *standardOrder) requeue(m *message) {
	if m.queued || !m.eligible() {
		return
	}
	m.queued = true
	if m.tenant != nil && m.tenant.noisy != nil {
		s.park(m)
	} else {
		s.back.push(m)
	}
}

func (s *standardOrder) forget(*message) {}

func (s *standardOrder) resume(*message) {}

func (s *standardOrder) withdraw(*message) {} // take skips messages in flight

func (s *standardOrder) reset(drop func(*message)) {
	rings := []*ring{&s.main, &s.late}
	for _, t := range s.noisy {
		rings = append(rings, &t.noisy.fresh)
	}
	for _, r := range rings {
		for m := range r.drain() {
			m.queued = false
			drop(m)
		}
	}
	s.parkedFresh = 0
	for _, t := range s.noisy {
		s.updateTurn(t)
	}
}

func (s *standardOrder) size() int { return s.main.n + s.late.n + s.parkedFresh }

func (s *standardOrder) deliverable(int64) bool { return s.quiet() > 0 || s.turns.Len() > 0 }

func (s *standardOrder) quiet() int { return s.main.n + s.late.n + s.back.n }

func (s *standardOrder) take(t takeRequest) []*message {
	s.quietIdleTenants(t.complete)
	taken := make([]*message, 0, min(t.limit, s.size()+s.back.n))
	for t.wants(len(taken)) {
		m := s.next(t.preferReceived)
		if m == nil {
			break
		}
		m.queued = false
		if !m.eligible() || m.inFlight {
			continue
		}
		if t.decide(m) == deliverIt {
			s.countDelivered(m)
			taken = append(taken, m)
		}
	}

	s.endTake()
	return taken
}

func (s *standardOrder) next(preferReceived bool) *message {
	if s.turns.Len() > 0 && (s.quiet() == 0 || s.quietInRow >= quietShare) {
		return s.nextNoisy(preferReceived)
	}
	return s.nextQuiet(preferReceived)
}

func (s *standardOrder) countDelivered(m *message) {
	switch t := m.tenant; {
	case t != nil && t.noisy != nil:
		if t.noisy.given == 0 {
			s.given = append(s.given, t)
		}
		t.noisy.given++
		s.updateTurn(t)
		s.quietInRow = 0
	case s.turns.Len() > 0:
		s.quietInRow++
	default:
		s.quietInRow = 0
	}
}

func (s *standardOrder) nextQuiet(preferReceived bool) *message {
	fresh := &s.main
	lateFirst := s.main.n == 0 || s.late.n > 0 && s.late.items[s.late.head].key < s.main.items[s.main.head].key
	if lateFirst {
		fresh = &s.late
	}
	return alternate(&s.back, fresh, &s.turn, preferReceived)
}

func (s *standardOrder) nextNoisy(preferReceived bool) *message {
	t := s.turns.first()
	n := t.noisy
	m := alternate(&n.back, &n.fresh, &n.turn, preferReceived)
	if !n.turn {
		s.parkedFresh--
	}
	s.updateTurn(t)
	return m
}

// alternate sets turn if it takes a message from back.
func alternate(back, fresh *ring, turn *bool, preferReceived bool) *message {
	*turn = back.n > 0 && (preferReceived || fresh.n == 0 || !*turn)
	if *turn {
		return back.pop()
	}
	return fresh.pop()
}

func (s *standardOrder) park(m *message) {
	n := m.tenant.noisy
	if m.fresh() {
		n.fresh.push(m)
		s.parkedFresh++
	} else {
		n.back.push(m)
	}
	s.updateTurn(m.tenant)
}

func (s *standardOrder) makeNoisy(t *tenant) {
	if t.noisy != nil || t.sentNothing(stamp()) {
		return
	}
	t.noisy = &noisyTenant{index: -1}
	s.noisy = append(s.noisy, t)
	for _, r := range []*ring{&s.main, &s.late, &s.back} {
		for range r.n {
			if m := r.pop(); m.tenant == t {
				s.park(m)
			} else {
				r.push(m)
			}
		}
	}
}

func (s *standardOrder) makeQuiet(t *tenant) {
	n := t.noisy
	s.parkedFresh -= n.fresh.n
	for m := range n.fresh.drain() {
		s.late.push(m)
	}
	for m := range n.back.drain() {
		s.back.push(m)
	}
	s.updateTurn(t)
	t.noisy = nil
}
