package supervisor

// Ready reports whether the app may be given work: the supervisor was started
// and every process that has a check passed it. Processes without a check do
// not count: a helper that fails is no reason to leave the app idle.
func (s *Supervisor) Ready() bool {
	open, _ := s.gateNow()
	return open
}

// gateNow says whether the gate belongs open, and if not, why.
func (s *Supervisor) gateNow() (open bool, reason string) {
	s.mu.Lock()
	keepers, stopped := s.keepers, s.stopped
	s.mu.Unlock()
	switch {
	case stopped:
		return false, "the app is being stopped"
	case keepers == nil:
		return false, "the app is not started"
	}
	for _, k := range keepers {
		st := k.snapshot()
		if st.Ready || k.proc.check().IsZero() {
			continue
		}
		if st.Reason != "" {
			return false, st.Reason
		}
		return false, st.Name + " is not ready"
	}
	return true, ""
}

// updateGate tells when the gate's answer changed. Holding the lock over the
// event keeps the events in order.
func (s *Supervisor) updateGate() {
	s.gateMu.Lock()
	defer s.gateMu.Unlock()
	open, reason := s.gateNow()
	if open == s.open {
		return
	}
	s.open = open
	call(s.opts.Events.Gate, Gate{Open: open, Reason: reason})
}
