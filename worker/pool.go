package worker

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"tendril/queue"
)

// PoolOptions configure a [Pool]. The zero value, and nil, are valid.
type PoolOptions struct {
	// Concurrency is the most deliveries in work at once over all workers of
	// the pool, 1 to 1000; 0 means 50. Values outside are brought to the nearest
	// bound.
	Concurrency int
	// Sleep is how long nothing is received after every queue was found empty by
	// a whole long poll; 0 means that the next one begins at once.
	Sleep time.Duration
	// Limiter protects the app of all workers that have none of their own; nil
	// for none.
	Limiter Limiter
	// Events are the listeners; nil for none.
	Events *PoolEvents
}

// PoolEvents are a pool's listeners, under the rules of [Events]. What happens
// to a message is told by the [Events] of its worker.
type PoolEvents struct {
	// Limited is the begin or the end of a time in which the pool's Limiter
	// keeps messages back.
	Limited func(Limited)
	// Rested is the begin of a rest after every queue was found empty.
	Rested func(Rested)
}

// Rested is one rest of a pool.
type Rested struct {
	// For is how long nothing will be received.
	For time.Duration
}

// PoolStatus is what a pool does at one moment.
type PoolStatus struct {
	// Workers is how many belong to it, those included that do not run yet.
	Workers int
	// Strict is true when the queues are in strict order, false when chance
	// decides by weight.
	Strict bool
	// Concurrency is the most deliveries at once; InWork how many run; Reserved
	// how many slots wait for the answer of a receive that is under way.
	Concurrency, InWork, Reserved int
	// Turns is how many messages began in the last minute.
	Turns int64
	// RestsUntil is when the next receive begins after a rest; zero when the
	// pool does not rest.
	RestsUntil time.Time
}

// Pool is what workers of several queues share: a limit of concurrency, and the
// order in which the queues get a free slot. Make it with [NewPool], name it in
// the [Options] of each worker, and run the workers; it has no goroutine of its
// own. Workers may join and stop at any time.
type Pool struct {
	opts   PoolOptions
	events PoolEvents
	brake  *brake
	random func() float64 // in [0,1)

	mu      desk
	members []*Worker
	strict  bool
	inWork  int
	granted int     // slots reserved for members
	lifted  bool    // a turn was given away, and nobody else had one by the order since
	due     *Worker // whose turn waits for a message; nil for nobody's
	pace    pace
	turns   recent
	entries []entry // of draw

	restUntil time.Time
}

// NewPool returns a pool without workers. opts may be nil.
func NewPool(opts *PoolOptions) *Pool {
	p := &Pool{random: evenly(rand.Float64())}
	if opts != nil {
		p.opts = *opts
	}
	p.opts.Concurrency = clamp(or(p.opts.Concurrency, DefaultConcurrency), 1, MaxConcurrency)
	p.opts.Sleep = max(p.opts.Sleep, 0)
	if p.opts.Events != nil {
		p.events = *p.opts.Events
	}
	p.brake = newBrake(p.opts.Limiter, &p.mu, p.events.Limited)
	return p
}

// Status returns a snapshot.
func (p *Pool) Status() PoolStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	s := PoolStatus{Workers: len(p.members), Strict: p.strict, Concurrency: p.opts.Concurrency, InWork: p.inWork,
		Reserved: p.granted}
	s.Turns, _ = p.turns.sum(now)
	if now.Before(p.restUntil) {
		s.RestsUntil = p.restUntil
	}
	return s
}

// join takes in a new worker.
func (p *Pool) join(w *Worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unite(w.brake)
	p.members = append(p.members, w)
	p.arrange()
}

// unite lets a brake share what others of the pool know of its limiter.
func (p *Pool) unite(b *brake) {
	if b == nil {
		return
	}
	if p.brake != nil && p.brake.limiter == b.limiter {
		b.bound = p.brake.bound
	}
	for _, m := range p.members {
		if m.brake != nil && m.brake.limiter == b.limiter {
			b.bound = m.brake.bound
		}
	}
}

// leave lets go of a worker that stopped.
func (p *Pool) leave(w *Worker) {
	p.grant(w, -w.share.granted)
	if p.due == w {
		p.due = nil
	}
	p.members = slices.DeleteFunc(p.members, func(m *Worker) bool { return m == w })
	p.arrange()
}

// arrange finds out which order the members ask for.
func (p *Pool) arrange() {
	p.strict = !slices.ContainsFunc(p.members, func(m *Worker) bool { return m.opts.Weight > 0 })
	p.entries = make([]entry, len(p.members))
	for i, m := range p.members {
		p.entries[i].weight = max(m.opts.Weight, 1)
	}
}

// grant reserves n more slots for a member; negative takes them back.
func (p *Pool) grant(w *Worker, n int) {
	w.share.granted += n
	p.granted += n
}

// take starts one message, or batch, on a free slot; nil when none is free or
// nobody has something to start. The caller repeats it until then.
func (p *Pool) take(now time.Time) (*Worker, *held) {
	if p.inWork >= p.opts.Concurrency {
		return nil, nil
	}
	for _, m := range p.members {
		if over := m.share.granted - m.prospects(now); m.share.granted > 0 && over > 0 {
			p.grant(m, -over)
			if m.limited(now) {
				p.keepTurn(m)
			}
		}
		if m.share.granted > 0 && m.startable(now) {
			if h := m.begin(now); h != nil {
				p.grant(m, -1)
				return m, h
			}
		}
	}
	for free := p.free(now); p.granted < free; {
		m := p.draw(now)
		if m == nil {
			break
		}
		if !m.startable(now) {
			if m.share.granted >= p.reservable(m, now) {
				p.keepTurn(m)
				break
			}
			p.grant(m, 1)
			continue
		}
		if h := m.begin(now); h != nil {
			return m, h
		}
		p.keepTurn(m)
		if m.prospects(now) > 0 && m.ready.len() > 0 {
			break // its work is being cut off
		}
	}
	p.awaitAnswers(now)
	return nil, nil
}

// free returns how many slots nothing runs on, those reserved included. What the
// limiter has no room for is not free.
func (p *Pool) free(now time.Time) int {
	free := p.opts.Concurrency - p.inWork
	if p.brake != nil {
		free = min(free, p.brake.room(now, brakeAhead))
	}
	return free
}

// reservable returns how many slots may be reserved for a member: about its
// share of them. The turn after that waits, and all others behind it: else
// whoever has messages in hand would run ahead of a queue whose receive is slow,
// by as many turns as there are slots.
func (p *Pool) reservable(w *Worker, now time.Time) int {
	return int(math.Ceil(p.shareOf(w, now)*float64(p.opts.Concurrency))) + 1
}

// keepTurn lets a member that was drawn and cannot use the slot yet be the next:
// another draw instead would favour those that are refused less often. In
// strict order nothing is drawn.
func (p *Pool) keepTurn(w *Worker) {
	if !p.strict && p.due == nil {
		p.due = w
	}
}

// draw chooses who gets the next free slot; nil for nobody.
func (p *Pool) draw(now time.Time) *Worker {
	if m := p.due; m != nil {
		if m.stand(now) == wants {
			p.due = nil
			return m
		}
		if !m.limited(now) {
			p.due = nil
		}
	}
	late, next := p.longestWaiting(now), p.byOrder(now)
	switch {
	case late != nil && late == next: // nothing is given away
	case late != nil && !p.lifted:
		p.lifted = true
		late.status.counts.Promoted++
		return late
	case next != nil:
		p.lifted = false
	}
	return next
}

// byOrder returns whose turn it is by strict order or by the weights; nil for
// nobody's.
func (p *Pool) byOrder(now time.Time) *Worker {
	for i, m := range p.members {
		p.entries[i].stand = m.stand(now)
	}
	i := -1
	if p.strict {
		i = firstInOrder(p.entries)
	} else if slices.ContainsFunc(p.entries, func(e entry) bool { return e.stand == wants }) {
		i = firstByChance(p.entries, p.random())
	}
	if i < 0 {
		return nil
	}
	return p.members[i]
}

// longestWaiting returns the member with the longest wait beyond its MaxWait,
// nil when there is none.
func (p *Pool) longestWaiting(now time.Time) (longest *Worker) {
	var most time.Duration
	for _, m := range p.members {
		if m.opts.MaxWait > 0 {
			if wait := m.overdue(now); wait > most {
				longest, most = m, wait
			}
		}
	}
	return longest
}

// awaitAnswers asks for a look at those receives whose answer decides about
// slots that stand still, when they take too long.
func (p *Pool) awaitAnswers(now time.Time) {
	for _, m := range p.members {
		m.giveUpHope(now)
		m.wakeAt(m.hopeDue())
	}
}

// poll begins as many receives of all members as may begin now.
func (p *Pool) poll(now time.Time) {
	for _, m := range p.members {
		m.pollOwn(now)
	}
}

// room returns how many messages the next receive of a member may bring, 0 for
// none now: what slots are reserved or free for, and the prefetch. A queue known to be
// empty has one receive that waits, as long as what it brings can start soon.
// Below a queue with work, strict order leaves only the reserved slots.
func (p *Pool) room(w *Worker, now time.Time) int {
	need := w.needed()
	if p.strict && p.claimedAbove(w, now) {
		return clamp(need, 0, queue.MaxBatch)
	}
	free := clamp(p.opts.Concurrency-p.inWork-p.granted, 0, max(w.limit-w.inWork, 0)) * w.batch.Size
	ahead := p.prefetch(w, now)
	if w.dryNow(now) {
		if len(w.polls.open) > 0 {
			return 0
		}
		return clamp(free+ahead, 0, queue.MaxBatch)
	}
	room := need + free + ahead
	if need <= 0 && free == 0 && room < min(queue.MaxBatch, ahead) {
		return 0
	}
	return clamp(room, 0, queue.MaxBatch)
}

// claimedAbove reports whether a queue before w in strict order has work.
func (p *Pool) claimedAbove(w *Worker, now time.Time) bool {
	for _, m := range p.members {
		if m == w {
			return false
		}
		if m.claims(now) {
			return true
		}
	}
	return false
}

// shareOf returns the share of the turns, up to 1, that a member has to expect
// when it has work: in strict order all, else by weight among those that may
// have work too.
func (p *Pool) shareOf(w *Worker, now time.Time) float64 {
	if p.strict {
		return 1
	}
	return p.part(w, func(m *Worker) bool { return !m.dryNow(now) })
}

// shareOfRoom is shareOf among those that share a limiter; a queue that is known
// to hold nothing has a share all the same, as if all of them were empty.
func (p *Pool) shareOfRoom(w *Worker, now time.Time) float64 {
	dry := w.dryNow(now)
	if p.strict && !dry {
		return 1
	}
	return p.part(w, func(m *Worker) bool { return m.brake.shares(w.brake) && (dry || !m.dryNow(now)) })
}

// part returns the weight of a member against those that count, and its own.
func (p *Pool) part(w *Worker, counts func(*Worker) bool) float64 {
	own, total := 0, 0
	for i, m := range p.members {
		if m == w {
			own = p.entries[i].weight
		}
		if m == w || counts(m) {
			total += p.entries[i].weight
		}
	}
	return float64(own) / float64(total)
}

// prefetch returns how many messages of a member to hold beyond those that
// have a slot: by the law of a single queue, from its share of the pool's
// speed.
func (p *Pool) prefetch(w *Worker, now time.Time) int {
	if w.limit < w.opts.Concurrency || w.ready.bytes+w.aside.bytes >= w.opts.PrefetchBytes ||
		p.pace.service == 0 || p.pace.service >= slowApp || now.Sub(p.pace.finished) >= slowApp {
		return 0
	}
	rate := p.pace.rate(p.opts.Concurrency) * max(w.pace.batch, 1) * p.shareOf(w, now)
	if w.pace.service > 0 {
		rate = min(rate, w.pace.rate(w.limit))
	}
	return w.pace.ahead(rate, &w.opts)
}
