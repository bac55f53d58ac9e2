package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/internal/cron/periodic"
	"tendril/queue"
)

// The oracle tracks every message. For each fault, it grants the affected messages an excuse (one more POST) or a
// charge (a receive without an attempt).
type oracle struct {
	w *world

	mu         sync.Mutex
	messages   map[string]*message
	receipts   map[string]*message
	groups     map[string][]*message
	since      map[string]time.Time
	leaders    map[int64]*life   // by term
	desired    int64             // last confirmed revision
	followed   map[*daemon]int64 // last applied revision
	operations map[operationKind]int
	rollouts   map[string]*rollout
	violations []string
	figures    figures
}

type figures struct {
	Accepted, Posts, Duplicates, Excuses, DeadLettered, Innocent, Runs, Redelivered, Unknown int
	Finished, RolledBack                                                                     int
	Slowest                                                                                  time.Duration
}

type sendState int

const (
	sending sendState = iota
	accepted
	refused
)

type message struct {
	key, group string
	isRun      bool
	state      sendState
	began      time.Time
	delay      time.Duration
	ids        []string

	holder   *life // with the newest receipt handle; may be nil
	receipt  string
	heldAt   time.Time
	hiddenTo time.Time
	gotAt    time.Time
	before   int

	attempts int
	active   []*post
	failed   *post
	failures int
	doneBy   []*life
	isDone   bool
	deleted  bool
	syncs    int // syncs of the log when the delete was confirmed

	excuses, duplicates, charges, redriven int
	why                                    []string
}

type post struct {
	*message
	life       *life
	attempt    int
	receives   int
	got        time.Time
	start, end time.Time
	excuses    int
	// overlaps means that a second daemon legitimately processed the message at about the same time, so that each may
	// overwrite the other's visibility timeout.
	overlaps bool
}

func (o *oracle) violated(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.violate(format, args...)
}

func (o *oracle) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	o.w.note("VIOLATION: %s", text)
	if len(o.violations) < 20 {
		o.violations = append(o.violations, fmt.Sprintf("%v: %s", o.w.now(), text))
	}
}

func (o *oracle) get(key string) *message {
	m := o.messages[key]
	if m == nil {
		m = &message{key: key, isRun: strings.Contains(key, "@")}
		o.messages[key] = m
	}
	return m
}

func (o *oracle) send(key, group string, delay time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.get(key)
	m.group, m.delay, m.began = group, delay, time.Now()
}

func (o *oracle) sent(key string, state sendState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.get(key)
	if m.state = state; state == accepted {
		o.figures.Accepted++
		o.groups[m.group] = append(o.groups[m.group], m)
	}
	if state == sending {
		o.figures.Unknown++
	}
	o.w.note("send %s: %v", key, state)
}

func (o *oracle) excuse(key, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.grant(o.get(key), why)
}

func (o *oracle) grant(m *message, why string) {
	m.excuses++
	m.why = append(m.why, fmt.Sprint(o.w.now(), " ", why))
	o.figures.Excuses++
}

func (o *oracle) excuseReceipt(receipt, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m := o.receipts[receipt]; m != nil {
		o.grant(m, why)
	}
}

func (o *oracle) charge(key, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.get(key).charges++
}

// chargeHeld charges all messages that the daemon of l holds, because it may release them.
func (o *oracle) chargeHeld(l *life) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.messages {
		if m.holder != nil && m.holder.daemon == l.daemon {
			m.charges++
		}
	}
}

func (o *oracle) left(l *life, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.messages {
		if m.holder == l && !m.deleted {
			o.grant(m, why)
		}
	}
}

// A kill loses the deadlines of receives younger than forgetful: a fifth of a second, plus the time of the commit.
const forgetful = 500 * time.Millisecond

// forgetReceives excuses messages received after since, because the queue's file may lack these receives.
func (o *oracle) forgetReceives(since time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.messages {
		if m.holder != nil && !m.deleted && m.heldAt.After(since) {
			o.grant(m, "the queue may have forgotten its receive")
		}
	}
}

// A power failure may lose all receives, and the deletes since the last sync.
func (o *oracle) powerFailed(syncs int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.messages {
		switch {
		case m.deleted && m.syncs == syncs:
			m.deleted = false
			o.grant(m, "its delete was not synced before the power failure")
		case m.deleted:
		case m.holder != nil:
			o.grant(m, "the power failure may have undone its receive")
		}
	}
}

func (o *oracle) received(l *life, got *queue.Message, visibility time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.get(keyOf(got))
	if got.ReceiveCount > 1 {
		o.figures.Redelivered++
	}
	m.holder, m.receipt, m.heldAt, m.gotAt, m.deleted = l, got.ReceiptHandle, time.Now(), time.Now(), false
	m.hiddenTo, m.before = time.Now().Add(visibility), m.excuses+m.redriven
	o.receipts[got.ReceiptHandle] = m
	o.w.note("daemon %d receives %s, receive %d", l.index, m.key, got.ReceiveCount)
	if !slices.Contains(m.ids, got.ID) {
		if m.ids = append(m.ids, got.ID); len(m.ids) > 1 {
			o.violate("%s is in the queue twice", m.key)
		}
	}
}

func (o *oracle) changed(c queue.VisibilityChange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.receipts[c.ReceiptHandle]
	if m == nil || m.receipt != c.ReceiptHandle {
		return
	}
	m.heldAt, m.hiddenTo = time.Now(), time.Now().Add(c.Visibility)
	if c.Visibility == 0 {
		m.holder = nil
	}
}

func (o *oracle) deleting(l *life, receipts []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range receipts {
		if m := o.receipts[r]; m != nil && l.killed.Err() == nil && !slices.Contains(m.doneBy, l) {
			o.violate("%s is deleted without a success", m.key)
		}
	}
}

func (o *oracle) deleted(receipt string, syncs int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m := o.receipts[receipt]; m != nil {
		m.deleted, m.syncs, m.holder = true, syncs, nil
		o.w.note("%s is deleted", m.key)
	}
}

func (o *oracle) begin(l *life, key string, got *queue.Message) *post {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.get(key)
	m.attempts++
	p := &post{message: m, life: l, attempt: m.attempts, receives: got.ReceiveCount, start: time.Now(), got: m.gotAt,
		excuses: m.before}
	o.figures.Posts++
	o.w.note("daemon %d posts %s, attempt %d, receive %d", l.index, key, p.attempt, got.ReceiveCount)
	if got.ReceiptHandle != "" && !l.posted(got.ReceiptHandle) {
		o.violate("%s is posted twice for one receive", key)
	}
	if n := l.working(1); n > o.w.plan.Connections {
		o.violate("%d POSTs at once, %d are allowed", n, o.w.plan.Connections)
	}
	if m.state == refused || m.began.IsZero() {
		o.violate("%s is posted, and its send was refused", key)
	}
	if time.Since(m.began) < m.delay {
		o.violate("%s is posted %v after its send, and was delayed by %v", key, time.Since(m.began), m.delay)
	}
	if len(m.doneBy) > 0 {
		o.figures.Duplicates++
	}
	if m.isDone { // a message sent twice may need several attempts
		m.isDone = false
		if m.duplicates++; m.duplicates > m.excuses+m.redriven {
			o.violate("%s is posted again after its success, %d times with %d reasons: %v", key, m.duplicates, m.excuses,
				m.why)
		}
	}
	for _, other := range m.active {
		if other.life == l {
			o.violate("%s is posted twice at once by one daemon", key)
		} else if m.excuses == 0 {
			o.violate("%s is posted twice at once", key)
		}
		p.overlaps, other.overlaps = true, true
	}
	if version, withdrawn := l.fleet.runsWithdrawn(); withdrawn {
		o.violate("%s is posted to version %d after daemon %d has learned of its rollback", key, version, l.index)
	}
	o.checkRetry(p)
	if o.w.plan.FIFO {
		o.checkOrder(m)
	}
	m.active = append(m.active, p)
	return p
}

func (o *oracle) checkRetry(p *post) {
	before := p.failed
	if before == nil || before.overlaps || p.receives <= before.receives ||
		before.excuses != p.message.excuses+p.redriven {
		return
	}
	earliest := before.got.Add(o.w.plan.Visibility)
	if o.w.plan.ErrorVisibility >= 0 {
		earliest = before.end.Add(o.w.plan.ErrorVisibility)
	}
	if p.start.Before(earliest.Add(-time.Millisecond)) {
		o.violate("%s is posted again %v too early", p.key, earliest.Sub(p.start))
	}
}

// Unless a fault excuses it, earlier messages of the group must be settled, and no other may be in flight.
func (o *oracle) checkOrder(m *message) {
	for _, before := range o.groups[m.group] {
		if before == m {
			break
		}
		if len(before.doneBy) == 0 && before.excuses == 0 && before.redriven == 0 && !o.usedUp(before) {
			o.violate("%s is posted before %s is settled", m.key, before.key)
		}
	}
	for _, other := range o.messages {
		if other != m && other.group == m.group && len(other.active) > 0 && other.excuses+m.excuses == 0 {
			o.violate("%s is posted while %s of its group is in work", m.key, other.key)
		}
	}
}

// usedUp reports whether the message failed at its last allowed receive or is in the dead-letter queue. It also returns
// true while the queue is down or the message has no ID yet.
func (o *oracle) usedUp(m *message) bool {
	if m.failed != nil && m.failed.receives >= o.w.plan.MaxReceives {
		return true
	}
	b, _ := o.w.server.current()
	if b == nil || len(m.ids) == 0 {
		return true
	}
	_, err := b.Message(context.Background(), o.w.queueName(deadQueue), m.ids[0])
	return err == nil
}

func (o *oracle) end(p *post, res *queue.Result, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := p.message
	p.life.working(-1)
	m.active = slices.DeleteFunc(m.active, func(q *post) bool { return p == q })
	p.end = time.Now()
	o.w.note("daemon %d has %v for %s, known %t", p.life.index, res.Outcome, m.key, known)
	switch {
	case !known:
		o.grant(m, "the answer of the app was not read")
	case res.Outcome == queue.Done:
		m.doneBy, m.isDone = append(m.doneBy, p.life), true
		if !o.w.server.diskFailing().IsZero() {
			o.grant(m, "its delete may have to wait for the disk")
		}
	default:
		before := m.failed
		p.overlaps = p.overlaps || p.excuses > 0 && before != nil && before.life != p.life &&
			before.end.After(p.got.Add(-o.w.plan.Visibility))
		m.failed = p
		m.failures++
	}
}

func (o *oracle) enqueuing(l *life, run *queue.Run) {
	shown := l.latest()
	o.mu.Lock()
	defer o.mu.Unlock()
	if shown.Before(run.ScheduledAt) {
		o.violate("%s is enqueued %v early", runKey(run), run.ScheduledAt.Sub(shown))
	}
	m := o.get(runKey(run))
	if m.began.IsZero() {
		m.group, m.began = "periodic-"+run.Task, time.Now()
	}
}

func (o *oracle) enqueued(run *queue.Run, applied bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.get(runKey(run))
	o.w.note("enqueue %s: %v", m.key, err)
	if err == nil && m.state != accepted {
		m.state = accepted
		o.figures.Runs++
	}
}

func (o *oracle) accepted(l *life, term int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if other := o.leaders[term]; other != nil && other != l && term != 0 {
		o.violate("daemons %d and %d enqueue in term %d", other.index, l.index, term)
	}
	o.leaders[term] = l
}

func (o *oracle) counting(tasks map[string]queue.TaskTimes) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for task, times := range tasks {
		if _, known := o.since[task]; !known {
			o.since[task] = times.UpTo
		}
	}
}

func (o *oracle) skipped(e periodic.Skipped) {
	if e.Reason == periodic.ReasonMissed || e.Reason == periodic.ReasonUncertain {
		o.violated("%d runs of %s from %v to %v are left out: %s", e.Count, e.Task, e.From, e.To, e.Reason)
	}
}

func (o *oracle) watchLeaders(ctx context.Context) {
	for sleep(ctx, 250*time.Millisecond) {
		var leading []string
		for _, d := range o.w.daemons {
			if l := d.running(); l != nil && l.elector != nil {
				if term, ok := l.elector.Term(); ok {
					leading = append(leading, fmt.Sprint(l.name(), " in term ", term))
				}
			}
		}
		if len(leading) > 1 {
			o.violated("%v lead at once", leading)
			return
		}
	}
}
