package worker

import (
	"context"
	"math/rand/v2"
	"time"
)

// Block is one kind of thing that keeps a worker from receiving.
type Block string

// The blocks. Any number of them may stand at once.
const (
	// Paused: by [Worker.Pause].
	Paused Block = "paused"
	// NotReady: the environment closed the gate with [Worker.Gate].
	NotReady Block = "not ready"
	// AppDown: the app refuses connections; it is probed until it answers.
	AppDown Block = "app down"
	// DeleteRefused: the queue refuses deletes for good (access denied, no
	// such queue). Receiving would only run messages again and again.
	DeleteRefused Block = "delete refused"
	// Throttling: the target refused to take anything for now; the gate opens
	// by itself when the pause is over.
	Throttling Block = "throttled"
	// Draining: the worker is stopping.
	Draining Block = "draining"
	// BreakerOpen: the breaker of the limiter lets nothing begin. It is no part of the
	// gate: what is in hand waits for its time.
	BreakerOpen Block = "breaker"
)

// Reason says why a worker does not receive.
type Reason struct {
	Block Block
	// Text is for people.
	Text string
	// Since is when it began.
	Since time.Time
}

// gate holds the reasons against receiving, by kind; it is open when there
// are none.
type gate struct {
	reasons [blocks]Reason
	shut    [blocks]bool
	n       int

	// fixed: the environment said whether the app is ready.
	fixed bool
	// stopProbe ends the prober; nil when none runs.
	stopProbe context.CancelFunc
	// downs counts the times that the gate closed for appDown since the app
	// last answered a delivery.
	downs int
	// answered is when the app last began to answer. A delivery begun before
	// that says nothing about the app of now.
	answered time.Time
	// alive is when the app last answered a delivery or passed a probe.
	alive time.Time
}

const (
	paused = iota
	notReady
	appDown
	deleteRefused
	throttling
	drain
	blocks
)

func (g *gate) open() bool { return g.n == 0 }

// close adds or renews a reason that holds since a time, and reports whether that
// changed anything.
func (g *gate) close(kind int, text string, since time.Time) bool {
	if g.shut[kind] {
		changed := g.reasons[kind].Text != text
		g.reasons[kind].Text = text
		return changed
	}
	g.shut[kind] = true
	g.n++
	name := [blocks]Block{Paused, NotReady, AppDown, DeleteRefused, Throttling, Draining}[kind]
	g.reasons[kind] = Reason{Block: name, Text: text, Since: since}
	return true
}

// lift takes a reason away and reports whether it was there.
func (g *gate) lift(kind int) bool {
	if !g.shut[kind] {
		return false
	}
	g.shut[kind] = false
	g.n--
	return true
}

// list returns the standing reasons.
func (g *gate) list() []Reason {
	var l []Reason
	for kind, shut := range g.shut {
		if shut {
			l = append(l, g.reasons[kind])
		}
	}
	return l
}

// Pause stops receiving until [Worker.Resume]. Deliveries in work go on; what
// was received and not posted yet is given back. A second call replaces the
// reason.
func (w *Worker) Pause(reason string) {
	w.mu.Lock()
	now := time.Now()
	w.shut(paused, reason, now)
	w.yield(now)
	w.unlock()
}

// Resume takes back [Worker.Pause].
func (w *Worker) Resume() {
	w.mu.Lock()
	w.lift(paused, time.Now())
	w.unlock()
}

// Gate tells the worker whether the app is ready. Until it is closed for the
// first time the worker finds out itself, by [Deliverer] Probe. An open gate
// also ends the probing after refused connections; after such an outage the
// worker begins with one delivery at a time. reason says why it is closed and
// is not used when it opens.
func (w *Worker) Gate(open bool, reason string) {
	now := time.Now()
	w.mu.Lock()
	w.gate.fixed = true
	if open {
		if w.gate.shut[notReady] && !w.gate.answered.IsZero() {
			w.limit = 1 // a new start of an app that answered before
		}
		w.appAnswers(now)
		w.lift(notReady, now)
	} else {
		w.shut(notReady, reason, now)
		w.yield(now)
	}
	w.unlock()
}

// shut adds a reason; the first one withdraws what is not in work yet.
func (w *Worker) shut(kind int, text string, now time.Time) { w.shutSince(kind, text, now, now) }

// shutSince is shut for a reason that holds since a time in the past.
func (w *Worker) shutSince(kind int, text string, since, now time.Time) {
	wasOpen, kept := w.gate.open(), w.keeping(now)
	if !w.gate.close(kind, text, since) {
		return
	}
	w.noteGate()
	if kept && !w.keeping(now) {
		w.withdraw(now)
	}
	if wasOpen {
		w.wakeAt(w.cancelPolls(now))
	}
}

// lift takes a reason away; the last one starts the worker again.
func (w *Worker) lift(kind int, now time.Time) {
	if !w.gate.lift(kind) {
		return
	}
	w.noteGate()
	if w.gate.open() {
		w.dispatch(now)
		w.poll(now)
	}
}

// yield lets the other workers of the pool have the slots that this one does
// not use any more.
func (w *Worker) yield(now time.Time) {
	if w.pool != nil {
		w.dispatch(now)
		w.poll(now)
	}
}

func (w *Worker) noteGate() {
	if f := w.events.GateChanged; f != nil {
		change := GateChanged{Open: w.gate.open(), Reasons: w.gate.list()}
		w.note(func() { f(change) })
	}
}

// unreached closes the gate after a delivery that began at started and put
// nothing on the wire, and starts the prober. Its first probe comes later each
// time that the app answers probes but no delivery.
func (w *Worker) unreached(reason string, started, now time.Time) {
	if started.Before(w.gate.answered) || w.phase != running {
		return
	}
	if !w.gate.shut[appDown] {
		w.gate.downs++
	}
	w.shut(appDown, "the app is not ready: "+reason, now)
	w.probe(again(w.gate.downs, probeEvery, probeLimit, rand.Float64()))
}

// returnable reports whether a message that did not reach the app is given back at
// once. Where that costs a receive, it is so only for the first outage since the
// app last answered: an app that passes probes and takes no delivery would use up
// all receives of a message within seconds.
func (w *Worker) returnable() bool {
	outages := w.gate.downs
	if !w.gate.shut[appDown] {
		outages++
	}
	return w.opts.UncountedReturns || outages <= 1
}

// appAnswers opens the gate for an app that accepts connections (again), and
// starts slowly after an outage.
func (w *Worker) appAnswers(now time.Time) {
	if w.gate.stopProbe != nil {
		w.gate.stopProbe()
		w.gate.stopProbe = nil
	}
	w.gate.alive = now
	if !w.gate.shut[appDown] {
		return
	}
	if !w.gate.answered.IsZero() {
		w.limit = 1
	}
	w.gate.answered = now
	w.lift(appDown, now)
}

// The rhythm of probing: the first wait, the longest, the longest probe, and the
// wait after the first failure of an idle app.
const (
	probeEvery   = 250 * time.Millisecond
	probeLimit   = 5 * time.Second
	probeTimeout = 60 * time.Second
	probeAgain   = time.Second
)

// downAfter is how many probes in a row an idle app has to fail before the gate
// closes: a single failure may be chance.
const downAfter = 2

// watchIdle probes an app that has answered nothing for a while, has nothing in
// work, and would otherwise be found dead only by its next message.
func (w *Worker) watchIdle(now time.Time) {
	if w.opts.ProbeIdle == 0 || w.phase != running || w.inWork > 0 || w.gate.shut[notReady] || w.gate.shut[appDown] ||
		now.Sub(w.gate.alive) < w.opts.ProbeIdle {
		return
	}
	w.probe(0)
}

// probe starts a prober whose first probe comes after wait, unless one runs.
func (w *Worker) probe(wait time.Duration) {
	if w.gate.stopProbe != nil {
		return
	}
	ctx, cancel := context.WithCancel(w.callCtx)
	w.gate.stopProbe = cancel
	w.tasks.Go(func() { w.prober(ctx, wait) })
}

// prober probes the app until it answers or ctx is done.
func (w *Worker) prober(ctx context.Context, wait time.Duration) {
	var first time.Time // the begin of the first probe
	for failures := 1; sleep(ctx, wait); failures++ {
		began := time.Now()
		if first.IsZero() {
			first = began
		}
		probing, cancel := context.WithTimeout(ctx, probeTimeout)
		err := w.app.Probe(probing)
		cancel()
		now := time.Now()
		w.mu.Lock()
		if ctx.Err() != nil {
			w.unlock()
			return
		}
		closed := w.gate.shut[appDown]
		if err == nil || !closed && began.Before(w.gate.alive) {
			w.appAnswers(now)
			w.unlock()
			return
		}
		if !closed && failures < downAfter {
			w.unlock()
			wait = probeAgain
			continue
		}
		w.shutSince(appDown, "the app is not ready: "+err.Error(), w.lastAlive(first), now)
		w.yield(now)
		w.unlock()
		wait = again(failures, probeEvery, probeLimit, rand.Float64())
	}
}

// lastAlive returns since when an idle app that fails its probes is taken to be
// down: from its last sign of life on, as far as it was watched.
func (w *Worker) lastAlive(firstProbe time.Time) time.Time {
	if watched := firstProbe.Add(-w.opts.ProbeIdle); w.gate.alive.Before(watched) {
		return watched
	}
	return w.gate.alive
}

// sleep waits for d and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
