package leader

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"tendril/queue"
)

type state struct {
	now    int
	stored queue.Lease
	nodes  [3]core
	calls  [3]*attempt
	// late contains swaps reported as failed that may still be applied.
	late []*attempt
	// owners contains the leader's node plus 1 for each term.
	owners [16]int8
}

const unit = time.Second

func (s *state) clock() time.Time { return time.Unix(int64(s.now), 0) }

// key is equal for states with the same next states. Only differences between times matter, up to the longest duration
// in Options. It omits the back-off, which addSwapOutcomes clears.
func (s *state) key() string {
	k := make([]byte, 0, 256)
	number := func(n int64) { k = append(strconv.AppendInt(k, n, 10), ' ') }
	at := func(t time.Time) { number(max(-4, min(4, t.Unix()-int64(s.now)))) }
	tries := func(a *attempt) {
		if a != nil {
			k = append(append(append(k, a.old.Version...), '>'), a.next.Version...)
			at(a.start)
		}
		k = append(k, ';')
	}
	k = append(k, s.stored.Version...)
	for _, owner := range s.owners {
		k = append(k, '0'+byte(owner))
	}
	for i := range s.nodes {
		c := &s.nodes[i]
		k = append(k, '|')
		number(int64(c.writes))
		number(c.highest)
		number(c.term)
		k = append(append(strconv.AppendBool(k, c.known), ' '), c.seen.Version...)
		for _, t := range []time.Time{c.seenAt, c.readAt, c.trusted, c.renewAt} {
			at(t)
		}
		tries(c.pending)
		tries(s.calls[i])
	}
	k = append(k, '+')
	for _, a := range s.late {
		tries(a)
	}
	return string(k)
}

func (s *state) apply(a *attempt) (won bool) {
	if s.stored.Version == a.old.Version {
		s.stored = a.next
	}
	return s.stored.Version == a.next.Version
}

func (s state) nextStates() []state {
	var all []state
	add := func(change func(*state)) {
		next := s
		next.late = append([]*attempt(nil), s.late...)
		change(&next)
		all = append(all, next)
	}
	add(func(n *state) { n.now++ })
	for i := range s.late {
		add(func(n *state) {
			a := n.late[i]
			n.late = append(n.late[:i], n.late[i+1:]...)
			n.apply(a)
		})
	}
	for i := range s.nodes {
		if a := s.calls[i]; a != nil {
			s.addSwapOutcomes(i, a, add)
			continue
		}
		if i > 0 && s.nodes[i-1].seenAt.IsZero() {
			break // nodes that have not started are equivalent
		}
		preview := s.nodes[i]
		switch preview.decide(s.clock()).do {
		case wait:
		case read:
			add(func(n *state) {
				n.nodes[i].decide(n.clock())
				n.nodes[i].observed(n.clock(), n.stored)
			})
		case swap:
			add(func(n *state) { n.calls[i] = n.nodes[i].decide(n.clock()).attempt })
		}
	}
	return all
}

func (s *state) addSwapOutcomes(i int, a *attempt, add func(func(*state))) {
	add(func(n *state) {
		n.calls[i] = nil
		won := n.apply(a)
		if n.nodes[i].swapped(n.clock(), a, won, n.stored) {
			n.recordLeader(i)
		}
	})
	failed := func(n *state) {
		n.calls[i] = nil
		n.nodes[i].backOff(n.clock())
		// The back-off is shorter than a unit: without this, no node could retry within the unit of a failure.
		n.nodes[i].notBefore = time.Time{}
	}
	add(func(n *state) { failed(n); n.apply(a) })                 // applied, but reported as failed
	add(func(n *state) { failed(n) })                             // not applied
	add(func(n *state) { failed(n); n.late = append(n.late, a) }) // applied later
	// The process gave up its term during the call.
	add(func(n *state) {
		if n.nodes[i].term > 0 {
			n.nodes[i].lose()
		}
	})
}

func (s *state) recordLeader(i int) {
	if term := s.nodes[i].term; s.owners[term] == 0 {
		s.owners[term] = int8(i + 1)
	}
}

func (s *state) violation() string {
	leaders := 0
	for i := range s.nodes {
		c := &s.nodes[i]
		if c.term == 0 {
			continue
		}
		if owner := s.owners[c.term]; owner != int8(i+1) {
			return fmt.Sprintf("term %d has two leaders, nodes %d and %d", c.term, owner-1, i)
		}
		if !s.clock().Before(c.trusted) {
			continue
		}
		leaders++
		if s.stored.Term != c.term || s.stored.Released {
			return fmt.Sprintf("node %d leads in term %d, stored is term %d: its effects would be refused", i, c.term,
				s.stored.Term)
		}
	}
	if leaders > 1 {
		return "two nodes lead at one time"
	}
	return ""
}

type search struct {
	visited   map[string]int8 // remaining steps
	led       map[int64]int   // states with a leader, by term
	violation string
}

func (s *search) visit(current state, depth int) {
	if s.violation != "" {
		return
	}
	if s.violation = current.violation(); s.violation != "" {
		return
	}
	key := current.key()
	if left, ok := s.visited[key]; ok && int(left) >= depth {
		return
	}
	s.visited[key] = int8(depth)
	for i := range current.nodes {
		if c := &current.nodes[i]; c.term > 0 && current.clock().Before(c.trusted) {
			s.led[c.term]++
		}
	}
	if depth == 0 {
		return
	}
	for _, next := range current.nextStates() {
		s.visit(next, depth-1)
	}
}

func initialState(held bool, lease time.Duration) state {
	var s state
	for i := range s.nodes {
		s.nodes[i] = core{session: string(rune('a' + i)), opts: &Options{
			Owner: string(rune('A' + i)), Lease: lease, Renew: unit, Margin: unit,
			Random: func() float64 { return 0 },
		}}
	}
	if !held {
		return s
	}
	a := &s.nodes[0]
	a.observed(s.clock(), s.stored)
	attempt := a.decide(s.clock()).attempt
	s.apply(attempt)
	a.swapped(s.clock(), attempt, true, s.stored)
	s.recordLeader(0)
	return s
}

// A write with an error may be applied later or never. Any step may be late, as after a suspension.
func TestEachTermHasOneLeaderInEveryInterleaving(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		held  bool
		lease time.Duration
		depth int
		// The search must reach these to be meaningful.
		terms  int64
		states int
	}{
		{"from an empty store", false, 3 * unit, 9, 1, 22_000},
		{"from an empty store, with a short lease", false, 2 * unit, 10, 2, 58_000},
		{"from a held lease", true, 3 * unit, 12, 2, 238_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := search{visited: map[string]int8{}, led: map[int64]int{}}
			depth := test.depth
			if testing.Short() {
				depth -= 3
			}
			s.visit(initialState(test.held, test.lease), depth)
			t.Logf("%d states within %d steps; leaders by term: %v", len(s.visited), depth, s.led)
			if s.violation != "" {
				t.Error(s.violation)
			}
			if testing.Short() || s.violation != "" {
				return
			}
			if s.led[test.terms] == 0 {
				t.Errorf("no state reaches term %d", test.terms)
			}
			if len(s.visited) < test.states {
				t.Errorf("%d states, want at least %d: the search omits interleavings", len(s.visited), test.states)
			}
		})
	}
}
