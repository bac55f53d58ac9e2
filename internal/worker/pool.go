package worker

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// PoolOptions configure a [Pool]. The zero value and nil are valid.
type PoolOptions struct {
	// Concurrency is the maximum number of deliveries in flight, 1 to 1000; 0 means 50.
	Concurrency int
	// Sleep is the pause after all queues were empty for an entire long poll; 0 disables it.
	Sleep time.Duration
}

// Pool lets workers of several queues share one concurrency limit. Workers may join ([Options].Pool) and stop at any
// time.
type Pool struct {
	concurrency int
	sleep       time.Duration
	random      func(n int) int

	mu           callbackMutex
	lanes        []*lane
	strict       bool
	inWork       int
	granted      int
	lastPromoted bool  // the last turn went to a queue because of MaxWait
	keptTurn     *lane // has the next turn, but cannot use it yet
	pace         *pace
	starts       history

	restUntil time.Time
}

// NewPool returns a pool without workers. opts may be nil.
func NewPool(opts *PoolOptions) *Pool {
	var o PoolOptions
	if opts != nil {
		o = *opts
	}
	return &Pool{sleep: max(o.Sleep, 0), random: rand.IntN, pace: newPace(), starts: newHistory(turnStep),
		concurrency: clamp(cmp.Or(o.Concurrency, defaultConcurrency), 1, maxConcurrency)}
}

// join makes workers with the same limiter share its state.
func (p *Pool) join(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.lanes {
		if l.limiter != nil && m.limiter != nil && m.limiter.shared.limiter == l.limiter.shared.limiter {
			l.limiter.shared = m.limiter.shared
		}
	}
	p.lanes = append(p.lanes, l)
	p.updateOrder()
}

func (p *Pool) leave(l *lane) {
	p.grant(l, -l.granted)
	if p.keptTurn == l {
		p.keptTurn = nil
	}
	p.lanes = slices.DeleteFunc(p.lanes, func(m *lane) bool { return m == l })
	p.updateOrder()
}

func (p *Pool) updateOrder() {
	p.strict = !slices.ContainsFunc(p.lanes, func(l *lane) bool { return l.core.opts.Weight > 0 })
}

func (p *Pool) grant(l *lane, n int) {
	l.granted += n
	p.granted += n
}

func (p *Pool) beginNext(now time.Time) (*Worker, []*held) {
	if p.inWork >= p.concurrency {
		return nil, nil
	}
	if of, batch := p.beginReserved(now); batch != nil {
		return of, batch
	}
	if of, batch := p.beginInTurn(now); batch != nil {
		return of, batch
	}

	for _, l := range p.lanes {
		l.expireExpected(now)
		l.core.wakeAt(l.nextExpiry())
	}
	return nil, nil
}

// beginReserved begins a delivery in a reserved slot. It releases slots that their queues can no longer use.
func (p *Pool) beginReserved(now time.Time) (*Worker, []*held) {
	for _, l := range p.lanes {
		if l.granted == 0 {
			continue
		}
		if excess := l.granted - l.usableSlots(now); excess > 0 {
			p.grant(l, -excess)
			if l.limitedToGranted(now) {
				p.keepTurn(l)
			}
		}
		if l.granted == 0 || !l.slots.startable(now) {
			continue
		}
		if batch := l.slots.beginBatch(now); batch != nil {
			p.grant(l, -1)
			return l.worker, batch
		}
	}
	return nil, nil
}

// beginInTurn gives free slots to queues in turn, until one begins a delivery. It reserves slots for queues without a
// message that can start.
func (p *Pool) beginInTurn(now time.Time) (*Worker, []*held) {
	for p.granted < p.concurrency-p.inWork {
		l := p.drawLane(now)
		switch {
		case l == nil:
			return nil, nil
		case l.slots.startable(now):
			if batch := l.slots.beginBatch(now); batch != nil {
				return l.worker, batch
			}
			p.keepTurn(l)
			if l.usableSlots(now) > 0 && l.messages.ready.len() > 0 {
				return nil, nil // the worker is aborting its deliveries
			}
		case l.granted < p.reservable(l, now):
			p.grant(l, 1)
		default:
			p.keepTurn(l)
			return nil, nil
		}
	}
	return nil, nil
}

// reservable is a queue's maximum of reserved slots. At the maximum, its turn and all later ones wait; otherwise,
// held messages of other queues would overtake its slow receives.
func (p *Pool) reservable(l *lane, now time.Time) int {
	return int(math.Ceil(p.shareOf(l, now)*float64(p.concurrency))) + 1
}

// keepTurn keeps a turn that a queue cannot use yet. Drawing again would favor queues whose limiters refuse less
// often.
func (p *Pool) keepTurn(l *lane) {
	if !p.strict && p.keptTurn == nil {
		p.keptTurn = l
	}
}

func (p *Pool) drawLane(now time.Time) *lane {
	if l := p.takeKeptTurn(now); l != nil {
		return l
	}

	late, next := p.mostOverdue(now), p.byOrder(now)
	if late != nil && late == next {
		return next
	}
	if late != nil && !p.lastPromoted {
		p.lastPromoted = true
		late.core.counts.Promoted++
		return late
	}
	if next != nil {
		p.lastPromoted = false
	}
	return next
}

func (p *Pool) takeKeptTurn(now time.Time) *lane {
	l := p.keptTurn
	switch {
	case l == nil:
		return nil
	case l.demand(now) == hasDemand:
		p.keptTurn = nil
		return l
	case !l.limitedToGranted(now):
		p.keptTurn = nil
	}
	return nil
}

func (p *Pool) byOrder(now time.Time) *lane {
	if p.strict {
		return firstInOrder(p.lanes, func(l *lane) demand { return l.demand(now) })
	}
	return takeTurn(p.lanes, func(l *lane) bool { return l.demand(now) == hasDemand }, p.random)
}

func (p *Pool) mostOverdue(now time.Time) (longest *lane) {
	var most time.Duration
	for _, l := range p.lanes {
		if l.core.opts.MaxWait > 0 {
			if wait := l.overdue(now); wait > most {
				longest, most = l, wait
			}
		}
	}
	return longest
}

func (p *Pool) above(l *lane) []*lane { return p.lanes[:slices.Index(p.lanes, l)] }

// shareOf returns the queue's expected share of the turns, 0 to 1.
func (p *Pool) shareOf(l *lane, now time.Time) float64 {
	if p.strict {
		return 1
	}
	return p.weightShare(l, func(m *lane) bool { return !m.emptyNow(now) })
}

// shareOfLimiter returns the share among the queues with the same limiter. For an empty queue, other empty ones count
// too.
func (p *Pool) shareOfLimiter(l *lane, now time.Time) float64 {
	empty := l.emptyNow(now)
	if p.strict && !empty {
		return 1
	}
	return p.weightShare(l, func(m *lane) bool { return m.limiter.shares(l.limiter) && (empty || !m.emptyNow(now)) })
}

func (p *Pool) weightShare(l *lane, counts func(*lane) bool) float64 {
	total := 0
	for _, m := range p.lanes {
		if m == l || counts(m) {
			total += m.weight
		}
	}
	return float64(l.weight) / float64(total)
}

// restIfEmpty lets the pool sleep if all queues were empty for an entire long poll.
func (p *Pool) restIfEmpty(now time.Time) {
	if p.sleep == 0 || slices.ContainsFunc(p.lanes, (*lane).preventsRest) {
		return
	}
	p.restUntil = now.Add(p.sleep)
	for _, l := range p.lanes {
		l.backlog.pollsEmpty = false
		l.core.wakeAt(p.restUntil)
	}
}

func (p *Pool) timeLeftInRound(l *lane, now time.Time) (left time.Duration) {
	for _, m := range p.lanes {
		if m == l {
			continue
		}
		for o := range m.poller.open {
			left = max(left, o.start.Add(o.wait).Sub(now))
		}
	}
	return left
}

// waitTime makes receives of empty queues end together, so that the whole pool can sleep.
func (p *Pool) waitTime(l *lane, now time.Time) time.Duration {
	if p.sleep == 0 || !l.backlog.pollsEmpty {
		return l.core.opts.WaitTime
	}
	return clamp(p.timeLeftInRound(l, now).Truncate(time.Second), time.Second, l.core.opts.WaitTime)
}
