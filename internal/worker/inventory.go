package worker

import (
	"slices"
	"time"
)

type inventory struct {
	core      *core
	held      map[string]*held
	groups    map[string]*group
	failing   map[string]failingGroup
	ready     heldList
	postponed postponedList

	bytes   int // of bodies and attributes
	turning int // groups

	done     memory[struct{}] // processed, but perhaps not deleted
	unposted memory[int]      // numbers of counted receives that were never posted, by keyInQueue
}

func newInventory(c *core) *inventory {
	return &inventory{core: c, held: make(map[string]*held), groups: make(map[string]*group),
		failing: make(map[string]failingGroup), done: newMemory[struct{}](memorySize), unposted: newMemory[int](memorySize)}
}

func (m *inventory) makeReady(h *held, now time.Time) {
	h.stage, h.readyAt = ready, now
	m.ready.push(h)
	if m.core.opts.Batch.Window > 0 {
		m.core.wakeAt(m.windowEnd(h))
	}
}

// postpone makes h ready at h.postponedUntil.
func (m *inventory) postpone(h *held) {
	h.stage = postponed
	m.postponed.insert(h)
	m.core.wakeAt(m.postponed.nextReady())
}

func (m *inventory) windowEnd(h *held) time.Time {
	return earlier(h.readyAt.Add(m.core.opts.Batch.Window), h.hiddenFrom.Add(h.visibility*7/16))
}

func (m *inventory) hold(h *held) {
	m.held[h.msg.ID] = h
	m.bytes += h.size()
}

func (m *inventory) forget(h *held) {
	if h.stage != gone {
		m.bytes -= h.size()
	}
	h.stage = gone
	if m.held[h.msg.ID] == h {
		delete(m.held, h.msg.ID)
	}
}

func (m *inventory) expireVisibility(h *held) {
	if h.lapsed {
		return
	}
	h.lapsed = true
	m.core.counts.VisibilityExpired++
	notify(m.core, m.core.events.VisibilityExpired, VisibilityExpired{ID: h.msg.ID, Task: h.task(), InWork: h.stage == posting})
}

// countUnposted records a receive that did not reach the app. counted means that the queue counted it.
func (m *inventory) countUnposted(h *held, counted bool) {
	id := keyInQueue(h.msg.ID, h.receives, h.receivesHere)
	n := m.unposted.values[id]
	if counted {
		n++
	}
	m.unposted.remember(id, n)
}

type failingGroup struct {
	until time.Time
	// urgent means that the failed message has used at least half of its receives, or that their number is unknown.
	urgent bool
}

// rememberFailing is the number of visibility timeouts for which failing groups are remembered, because another
// worker may receive their messages meanwhile.
const rememberFailing = 4

// If returns count as receives, groupFailed remembers the failing group of a FIFO queue.
func (m *inventory) groupFailed(h *held, again time.Time) {
	if m.core.opts.FIFO && !m.core.opts.UncountedReturns && h.msg.GroupID != "" {
		m.failing[h.msg.GroupID] = failingGroup{
			until:  again.Add(rememberFailing * m.core.opts.VisibilityTimeout),
			urgent: 2*h.receives >= m.core.opts.MaxReceives,
		}
	}
}

func (m *inventory) groupRecovered(group string) { delete(m.failing, group) }

// oneAtATime reports whether to receive messages one at a time, so that those behind a failing one are not received
// with it. With a large backlog, only urgent groups justify the calls.
func (m *inventory) oneAtATime(now time.Time, largeBacklog bool) bool {
	isWorthwhile := false
	for group, f := range m.failing {
		if !now.Before(f.until) {
			delete(m.failing, group)
			continue
		}
		isWorthwhile = isWorthwhile || f.urgent || !largeBacklog
	}
	return isWorthwhile
}

type heldList struct {
	list  []*held
	head  int
	bytes int
}

func (l *heldList) len() int { return len(l.list) - l.head }

func (l *heldList) push(h *held) {
	l.list = append(l.list, h)
	l.bytes += len(h.msg.Body)
}

func (l *heldList) first() *held {
	if l.len() == 0 {
		return nil
	}
	return l.list[l.head]
}

func (l *heldList) pop() *held {
	h := l.first()
	if h == nil {
		return nil
	}

	l.bytes -= len(h.msg.Body)
	l.list[l.head] = nil
	l.head++
	if 2*l.head >= len(l.list) {
		l.list, l.head = slices.Delete(l.list, 0, l.head), 0
	}
	return h
}

func (l *heldList) remove(h *held) {
	i := slices.Index(l.list, h)
	l.list = slices.Delete(l.list, i, i+1)
	l.bytes -= len(h.msg.Body)
}

// memory drops its oldest entries when full.
type memory[V any] struct {
	bound  int
	values map[string]V
	order  []string // may include deleted keys
}

const memorySize = 10000

func newMemory[V any](bound int) memory[V] {
	return memory[V]{bound: bound, values: make(map[string]V)}
}

func (m *memory[V]) remember(name string, v V) {
	if _, ok := m.values[name]; !ok {
		m.order = append(m.order, name)
	}
	m.values[name] = v
	for len(m.values) > m.bound || len(m.order) > 2*m.bound {
		delete(m.values, m.order[0])
		m.order = m.order[1:]
	}
}

func (m *inventory) joinGroup(h *held) (mayStart bool) {
	if !m.core.opts.FIFO || h.msg.GroupID == "" {
		return true
	}

	g := m.groups[h.msg.GroupID]
	if g == nil {
		h.group = &group{id: h.msg.GroupID, active: 1}
		m.groups[h.msg.GroupID] = h.group
		return true
	}
	h.group = g
	g.waiting = append(g.waiting, h)
	return false
}

// A turning group will soon need a slot for its next message.
func (m *inventory) markTurning(g *group) {
	if g.deleting == g.active && len(g.waiting) > 0 && !g.turning {
		g.turning = true
		m.turning++
	}
}

func (m *inventory) leaveGroup(h *held, now time.Time) {
	g := h.group
	if g == nil {
		return
	}

	h.group = nil
	g.active--
	if g.active > 0 {
		m.markTurning(g)
		return
	}

	m.endTurn(g)
	if len(g.waiting) == 0 {
		delete(m.groups, g.id)
		return
	}

	next := g.waiting[0]
	g.waiting = g.waiting[1:]
	g.active = 1
	if now.Before(next.postponedUntil) {
		m.postpone(next)
		return
	}
	m.makeReady(next, now)
}

// disband removes an unfinished message and those waiting behind it from their group. The caller must return the
// latter to the queue.
func (m *inventory) disband(h *held) (waiting []*held) {
	g := h.group
	if g == nil {
		return nil
	}
	h.group = nil
	g.active--
	if h.stage == deleting {
		g.deleting--
	}
	waiting = m.detachWaiting(g)
	if g.active == 0 {
		delete(m.groups, g.id)
	}
	return waiting
}

func (m *inventory) detachWaiting(g *group) (waiting []*held) {
	for _, h := range g.waiting {
		h.group = nil
	}
	waiting, g.waiting = g.waiting, nil
	m.endTurn(g)
	return waiting
}

func (m *inventory) endTurn(g *group) {
	if g.turning {
		g.turning = false
		m.turning--
	}
}

func (m *inventory) putBackInGroup(h *held) {
	g := h.group
	g.active--
	h.stage = waiting
	g.waiting = slices.Insert(g.waiting, 0, h)
	m.markTurning(g)
}

// lastReceive reports whether h reached the maximum receive count of a FIFO queue. Messages that were ever
// dead-lettered never do, because their count may include receives in other queues.
func (m *inventory) lastReceive(h *held) bool {
	return m.core.opts.FIFO && m.core.opts.MaxReceives > 0 && h.receives == m.core.opts.MaxReceives && h.msg.DeadLetterSource == ""
}

const (
	postponeUsual    = 100 * time.Millisecond
	postponeShortest = 10 * time.Millisecond
	postponeLongest  = time.Minute
)

// Beyond maxPostponed messages, or bodies of postponedPerBytes times PrefetchBytes, the latest postponed message is
// returned. It stays invisible for surplusPause, so that it is not received again immediately.
const (
	maxPostponed      = 1000
	postponedPerBytes = 8
	surplusPause      = postponeLongest
)

type postponedList struct{ heldList } // sorted by postponedUntil

func (l *postponedList) insert(h *held) {
	l.push(h)
	for i := len(l.list) - 1; i > l.head && h.postponedUntil.Before(l.list[i-1].postponedUntil); i-- {
		l.list[i], l.list[i-1] = l.list[i-1], h
	}
}

func (l *postponedList) nextReady() time.Time {
	if h := l.first(); h != nil {
		return h.postponedUntil
	}
	return time.Time{}
}

func (l *postponedList) exceeds(bytes int) bool {
	return l.len() > maxPostponed || l.len() > 1 && l.bytes > bytes
}

func (l *postponedList) lastPostponed() *held {
	last := l.first()
	for _, h := range l.list[l.head:] {
		if !h.postponedAt.Before(last.postponedAt) {
			last = h
		}
	}
	return last
}

func (m *inventory) addStatus(s *Status, now time.Time) {
	s.Prefetched = m.ready.len()
	s.Postponed = m.postponed.len()
	for _, g := range m.groups {
		s.Waiting += len(g.waiting)
	}

	for _, h := range m.held {
		if h.stage != deleting {
			s.Oldest = max(s.Oldest, now.Round(0).Sub(h.msg.SentAt))
		}
	}
	if longest := m.longestDelivery(); longest != nil {
		s.LongestDelivery = now.Sub(longest.startedAt)
		s.LongestID = longest.msg.ID
		if m.core.opts.FIFO {
			s.LongestGroup = longest.msg.GroupID
		}
	}
}

func (m *inventory) longestDelivery() (longest *held) {
	for _, h := range m.held {
		if h.stage == posting && (longest == nil || h.startedAt.Before(longest.startedAt)) {
			longest = h
		}
	}
	return longest
}
