package simulation

import (
	"slices"
	"testing"

	"tendril/internal/testing/faultfs"
)

const shrinkRuns = 150

func shrink(t *testing.T, fs *faultfs.FS, p *plan) (*plan, outcome) {
	s := &shrinker{left: shrinkRuns, run: func(p *plan) outcome { return run(t, fs, p, "") }}
	short := s.shrink(p)
	return short, s.last
}

func (s *shrinker) shrink(p *plan) *plan {
	best, found := s.breaks(*p)
	for i := 0; i < 2 && !found; i++ {
		best, found = s.breaks(*p)
	}
	if !found {
		return nil
	}
	best = shorten(s, best, func(p *plan) *[]fault { return &p.Faults })
	best = shorten(s, best, func(p *plan) *[]operation { return &p.Operations })
	for changed := true; changed; {
		changed = false
		for _, smaller := range []func(*plan){
			func(p *plan) { p.Messages /= 2 }, func(p *plan) { p.Messages-- }, func(p *plan) { p.Daemons-- },
			func(p *plan) { p.Groups = 1 }, func(p *plan) { p.Connections /= 2 }, func(p *plan) { p.Tasks = false },
			func(p *plan) { p.FIFO = false }, func(p *plan) { p.Poison = 0 }, func(p *plan) { p.Failing = 0 },
			func(p *plan) { p.Slow = 0 }, func(p *plan) { p.Hanging = 0 }, func(p *plan) { p.Delayed = 0 },
		} {
			next := *best
			smaller(&next)
			if next.isSame(best) || !next.isPossible() {
				continue
			}
			if shorter, found := s.breaks(next); found {
				best, changed = shorter, true
			}
		}
	}
	return best
}

func shorten[E any](s *shrinker, best *plan, list func(*plan) *[]E) *plan {
	for size := len(*list(best)); size > 0; {
		removed := false
		for at := 0; at < len(*list(best)); {
			shorter := *best
			*list(&shorter) = slices.Delete(slices.Clone(*list(best)), at, min(at+size, len(*list(best))))
			if next, found := s.breaks(shorter); found {
				best, removed = next, true
			} else {
				at += size
			}
		}
		if !removed || size > len(*list(best)) {
			size /= 2
		}
	}
	return best
}

type shrinker struct {
	run  func(*plan) outcome
	left int
	last outcome
}

func (s *shrinker) breaks(p plan) (*plan, bool) {
	if s.left == 0 {
		return nil, false
	}
	s.left--
	out := s.run(&p)
	if len(out.violations) == 0 {
		return nil, false
	}
	s.last = out
	return &p, true
}

func (p *plan) isSame(q *plan) bool { return p.String() == q.String() }

func (p *plan) isPossible() bool {
	for _, f := range p.Faults {
		if f.Daemon > p.Daemons || f.Daemon == p.Daemons && !slices.Contains(onNetwork, f.Kind) {
			return false
		}
	}
	for _, op := range p.Operations {
		if op.Daemon >= p.Daemons || !p.Tasks {
			return false
		}
	}
	return p.Messages > 0 && p.Daemons > 0 && p.Connections > 0
}

func TestShrink(t *testing.T) {
	t.Parallel()
	p := newPlan(14)
	p.Faults = slices.Repeat([]fault{{Kind: appSlow}, {Kind: redrive}}, 6)
	p.Faults[7] = fault{Kind: powerFailure}
	s := &shrinker{left: shrinkRuns, run: func(p *plan) (out outcome) {
		if slices.ContainsFunc(p.Faults, func(f fault) bool { return f.Kind == powerFailure }) && p.Messages > 3 {
			out.violations = []string{"broken"}
		}
		return out
	}}
	got := s.shrink(p)
	if len(got.Faults) != 1 || got.Messages != 4 || got.Daemons != 1 || got.Tasks || got.Slow+got.Failing > 0 {
		t.Errorf("shrunk to %s", got)
	}
}
