package environment

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// defaultSample is how many lines of a kind are printed a second.
const defaultSample = 100

// lineKind is what makes log lines alike: the name of a component and the word for
// an outcome, never an id. Successes and failures are kinds of their own, so that
// any number of the ones hides none of the others.
type lineKind struct {
	component, outcome string
}

// leftOut counts the lines of a kind that were not printed.
type leftOut struct {
	kind  lineKind
	lines int
}

// String returns the sentence that stands for the lines.
func (l leftOut) String() string {
	if l.lines == 1 {
		return "1 line like this one was left out"
	}
	return fmt.Sprintf("%d lines like this one were left out", l.lines)
}

// sampler decides which of many alike lines are printed: of each kind the first
// ones in every second, while the others are counted. A kind's second begins with
// its first line, so that a rare line is always printed. It is safe for
// concurrent use.
type sampler struct {
	most int

	mu    sync.Mutex
	kinds []*sample
}

// sample is the share of one kind.
type sample struct {
	kind lineKind
	most int

	mu            sync.Mutex
	since         time.Time
	printed, left int
}

// newSampler returns a sampler that prints so many lines of each kind a second;
// 0 means 100, and less than 0 all of them.
func newSampler(most int) *sampler {
	return &sampler{most: cmp.Or(most, defaultSample)}
}

// of returns the share of a kind, the same for the same kind. Who prints keeps
// it: there should be few kinds, and looking one up takes longer than asking it.
func (s *sampler) of(component, outcome string) *sample {
	kind := lineKind{component, outcome}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kinds {
		if k.kind == kind {
			return k
		}
	}
	k := &sample{kind: kind, most: s.most}
	s.kinds = append(s.kinds, k)
	return k
}

// admit reports whether a line is printed at now. With the first line of a new
// second comes how many were left out in the last one; a [leftOut] of so many is
// to be printed before, if it is not 0.
func (k *sample) admit(now time.Time) (ok bool, before int) {
	if k.most < 0 {
		return true, 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.since) >= time.Second {
		before = k.left
		k.since, k.printed, k.left = now, 0, 0
	}
	if k.printed >= k.most {
		k.left++
		return false, before
	}
	k.printed++
	return true, before
}

// due returns what was left out in seconds that are over, for kinds whose next
// line has not come yet, sorted by kind. Ask once a second, so that a count does
// not wait for the next line. What was returned once is not returned again.
func (s *sampler) due(now time.Time) []leftOut {
	return s.collect(func(k *sample) bool { return now.Sub(k.since) >= time.Second })
}

// rest returns everything that was left out and not told yet, sorted by kind: for
// the end of the log.
func (s *sampler) rest() []leftOut {
	return s.collect(func(*sample) bool { return true })
}

// collect takes the counts of the kinds that are over.
func (s *sampler) collect(over func(*sample) bool) []leftOut {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []leftOut
	for _, k := range s.kinds {
		k.mu.Lock()
		if k.left > 0 && over(k) {
			all = append(all, leftOut{k.kind, k.left})
			k.left = 0
		}
		k.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b leftOut) int {
		return cmp.Or(cmp.Compare(a.kind.component, b.kind.component), cmp.Compare(a.kind.outcome, b.kind.outcome))
	})
	return all
}
