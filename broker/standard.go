package broker

// standard arranges a standard queue: roughly oldest first. Messages that came
// back share the head with fresh ones one to one, so that neither starves the
// other.
type standard struct {
	main ring // fresh, in key order
	late ring // fresh, sent with a delay that has ended, in the order of its end
	back ring // received before
	turn bool // the last one came from back
}

func (s *standard) add(m *message) {
	m.queued = true
	if m.due != 0 {
		s.late.push(m)
	} else {
		s.main.push(m)
	}
}

func (s *standard) giveBack(m *message) {
	if !m.queued && m.idle() {
		m.queued = true
		s.back.push(m)
	}
}

func (s *standard) release(*message) {}

func (s *standard) resume(*message) {}

func (s *standard) promote(int64) {}

func (s *standard) reset(drop func(*message)) {
	for _, r := range []*ring{&s.main, &s.late} {
		for m := r.pop(); m != nil; m = r.pop() {
			m.queued = false
			drop(m)
		}
	}
}

func (s *standard) clear(drop func(*message)) {
	s.reset(drop)
	s.back = ring{}
}

func (s *standard) size() int { return s.main.len() + s.late.len() }

func (s *standard) deliverable() bool { return s.size()+s.back.len() > 0 }

func (s *standard) take(t taking) []*message {
	taken := make([]*message, 0, min(t.limit, s.size()+s.back.len()))
	for len(taken) < t.limit {
		m := s.next(t.oldOnly)
		if m == nil {
			break
		}
		m.queued = false
		if !m.idle() || m.flying {
			continue
		}
		if t.judge(m) == give {
			taken = append(taken, m)
		}
	}
	return taken
}

// next removes the next message, whatever it is.
func (s *standard) next(oldOnly bool) *message {
	fresh := s.older()
	if oldOnly && s.back.len() > 0 {
		fresh = nil
	}
	if s.back.len() > 0 && (fresh == nil || !s.turn) {
		s.turn = true
		return s.back.pop()
	}
	s.turn = false
	if fresh == nil {
		return nil
	}
	return fresh.pop()
}

// older returns the fresh ring whose head became visible first.
func (s *standard) older() *ring {
	m, l := s.main.peek(), s.late.peek()
	switch {
	case m == nil && l == nil:
		return nil
	case l == nil || m != nil && m.key < l.key:
		return &s.main
	default:
		return &s.late
	}
}
