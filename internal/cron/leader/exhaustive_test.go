package leader

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"tendril/queue"
)

type world struct {
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

func (w *world) clock() time.Time { return time.Unix(int64(w.now), 0) }

// key is equal for worlds with the same futures. Only differences between times matter, up to the longest duration in
// rules.
func (w *world) key() string {
	k := make([]byte, 0, 256)
	number := func(n int64) { k = append(strconv.AppendInt(k, n, 10), ' ') }
	at := func(t time.Time) { number(max(-4, min(4, t.Unix()-int64(w.now)))) }
	tries := func(a *attempt) {
		if a != nil {
			k = append(append(append(k, a.old.Version...), '>'), a.next.Version...)
			at(a.start)
		}
		k = append(k, ';')
	}
	k = append(k, w.stored.Version...)
	for _, owner := range w.owners {
		k = append(k, '0'+byte(owner))
	}
	for i := range w.nodes {
		c := &w.nodes[i]
		k = append(k, '|')
		number(int64(c.writes))
		number(c.highest)
		number(c.term)
		k = append(append(strconv.AppendBool(k, c.known), ' '), c.seen.Version...)
		for _, t := range []time.Time{c.seenAt, c.readAt, c.trusted, c.renewAt} {
			at(t)
		}
		tries(c.pending)
		tries(w.calls[i])
	}
	k = append(k, '+')
	for _, a := range w.late {
		tries(a)
	}
	return string(k)
}

func (w *world) apply(a *attempt) (won bool) {
	if w.stored.Version == a.old.Version {
		w.stored = a.next
	}
	return w.stored.Version == a.next.Version
}

func (w world) futures() []world {
	var all []world
	add := func(change func(*world)) {
		next := w
		next.late = append([]*attempt(nil), w.late...)
		change(&next)
		all = append(all, next)
	}
	add(func(n *world) { n.now++ })
	for i := range w.late {
		add(func(n *world) {
			a := n.late[i]
			n.late = append(n.late[:i], n.late[i+1:]...)
			n.apply(a)
		})
	}
	for i := range w.nodes {
		if a := w.calls[i]; a != nil {
			w.answers(i, a, add)
			continue
		}
		if i > 0 && w.nodes[i-1].seenAt.IsZero() {
			break // nodes that have not started are equivalent
		}
		probe := w.nodes[i]
		switch probe.decide(w.clock()).do {
		case wait:
		case read:
			add(func(n *world) {
				n.nodes[i].decide(n.clock())
				n.nodes[i].observed(n.clock(), n.stored)
			})
		case swap:
			add(func(n *world) { n.calls[i] = n.nodes[i].decide(n.clock()).attempt })
		}
	}
	return all
}

func (w *world) answers(i int, a *attempt, add func(func(*world))) {
	add(func(n *world) {
		n.calls[i] = nil
		won := n.apply(a)
		if n.nodes[i].swapped(n.clock(), a, won, n.stored) {
			n.leads(i)
		}
	})
	failed := func(n *world) {
		n.calls[i] = nil
		n.nodes[i].failed(n.clock())
	}
	add(func(n *world) { failed(n); n.apply(a) })                 // applied, but reported as failed
	add(func(n *world) { failed(n) })                             // not applied
	add(func(n *world) { failed(n); n.late = append(n.late, a) }) // applied later
	// The process gave up its term meanwhile.
	add(func(n *world) {
		if n.nodes[i].term > 0 {
			n.nodes[i].lose()
		}
	})
}

func (w *world) leads(i int) {
	if term := w.nodes[i].term; w.owners[term] == 0 {
		w.owners[term] = int8(i + 1)
	}
}

func (w *world) wrong() string {
	inCharge := 0
	for i := range w.nodes {
		c := &w.nodes[i]
		if c.term == 0 {
			continue
		}
		if owner := w.owners[c.term]; owner != int8(i+1) {
			return fmt.Sprintf("term %d has two leaders, nodes %d and %d", c.term, owner-1, i)
		}
		if !w.clock().Before(c.trusted) {
			continue
		}
		inCharge++
		if w.stored.Term != c.term || w.stored.Released {
			return fmt.Sprintf("node %d leads in term %d, stored is term %d: its effects would be refused", i, c.term,
				w.stored.Term)
		}
	}
	if inCharge > 1 {
		return "two nodes lead at one time"
	}
	return ""
}

type search struct {
	visited map[string]int8 // remaining steps
	led     map[int64]int   // worlds with a leader, by term
	wrong   string
}

func (s *search) visit(w world, depth int) {
	if s.wrong != "" {
		return
	}
	if wrong := w.wrong(); wrong != "" {
		s.wrong = wrong
		return
	}
	key := w.key()
	if left, ok := s.visited[key]; ok && int(left) >= depth {
		return
	}
	s.visited[key] = int8(depth)
	for i := range w.nodes {
		if c := &w.nodes[i]; c.term > 0 && w.clock().Before(c.trusted) {
			s.led[c.term]++
		}
	}
	if depth == 0 {
		return
	}
	for _, next := range w.futures() {
		s.visit(next, depth-1)
	}
}

func beginning(held bool, lease time.Duration) world {
	var w world
	for i := range w.nodes {
		w.nodes[i] = core{session: string(rune('a' + i)), rules: rules{
			owner: string(rune('A' + i)), lease: lease, renew: unit, margin: unit,
			chance: func() float64 { return 0 },
		}}
	}
	if !held {
		return w
	}
	a := &w.nodes[0]
	a.observed(w.clock(), w.stored)
	attempt := a.decide(w.clock()).attempt
	w.apply(attempt)
	a.swapped(w.clock(), attempt, true, w.stored)
	w.leads(0)
	return w
}

// A write with an error may be applied later or never. Any step may be late, as after a suspension.
func TestEveryInterleaving(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		held  bool
		lease time.Duration
		depth int
		terms int64 // the search must reach these to be meaningful
	}{
		{"from an empty store", false, 3 * unit, 9, 1},
		{"from an empty store, with a short lease", false, 2 * unit, 10, 2},
		{"from a held lease", true, 3 * unit, 12, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := search{visited: map[string]int8{}, led: map[int64]int{}}
			depth := test.depth
			if testing.Short() {
				depth -= 3
			}
			s.visit(beginning(test.held, test.lease), depth)
			t.Logf("%d worlds within %d steps; leaders by term: %v", len(s.visited), depth, s.led)
			if s.wrong != "" {
				t.Error(s.wrong)
			}
			if !testing.Short() && s.led[test.terms] == 0 {
				t.Errorf("no world reaches term %d", test.terms)
			}
		})
	}
}
