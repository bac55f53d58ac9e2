package worker

import (
	"math/rand/v2"
	"time"

	"tendril/queue"
)

// The rhythm of pauses after a target refused to take anything: about the
// first, the longest by its own growth, and the longest that a target may ask
// the worker for; the message itself may have to wait longer.
const (
	throttleFirst   = 2 * time.Second
	throttleLimit   = 30 * time.Second
	throttleLongest = 5 * time.Minute
)

// throttle is what is known of a target that has too much to do.
type throttle struct {
	// from and until are the latest pause.
	from, until time.Time
	// count counts the pauses since the target last took a message.
	count int
}

// pause returns how long to leave the target alone after it refused a
// delivery that began at started, and whether that is a new pause. A delivery
// begun before the latest pause tells nothing new.
func (t *throttle) pause(asked time.Duration, started, now time.Time, random float64) (d time.Duration, fresh bool) {
	if !t.from.IsZero() && started.Before(t.until) {
		return max(asked, t.until.Sub(now), time.Second), false
	}
	if asked > 0 {
		return asked, true
	}
	return again(t.count+1, throttleFirst, throttleLimit, random), true
}

// throttled closes the gate for a time, after a delivery that began at started
// was refused, and returns when the message may come again.
func (w *Worker) throttled(res *queue.Result, started, now time.Time) time.Duration {
	pause, fresh := w.throttle.pause(res.RetryAfter, started, now, rand.Float64())
	if w.phase != running {
		return pause
	}
	if fresh {
		w.throttle.count++
		w.throttle.from = now
	}
	if until := now.Add(min(pause, throttleLongest)); until.After(w.throttle.until) {
		w.throttle.until = until
		if f := w.events.Throttled; f != nil {
			event := Throttled{For: until.Sub(now), Reason: res.Reason, Consecutive: w.throttle.count}
			w.note(func() { f(event) })
		}
	}
	w.shut(throttling, "the target takes nothing for now: "+res.Reason, now)
	w.setAside(pause, now)
	w.wakeAt(w.throttle.until)
	return pause
}

// unthrottle opens the gate when the pause is over, for one delivery at a time
// at first.
func (w *Worker) unthrottle(now time.Time) {
	if !w.gate.shut[throttling] || now.Before(w.throttle.until) {
		return
	}
	w.limit = 1
	w.lift(throttling, now)
}

// keeping reports whether what was received and not posted stays in hand: the
// gate is open, or will be by itself when the target takes messages again.
func (w *Worker) keeping(time.Time) bool {
	return w.gate.open() || w.gate.n == 1 && w.gate.shut[throttling]
}

// setAside postpones what is lined up until a pause is over, so that it is kept
// hidden meanwhile.
func (w *Worker) setAside(pause time.Duration, now time.Time) {
	for h := w.ready.first(); h != nil; h = w.ready.first() {
		w.ready.pop()
		w.postpone(h, clamp(pause, postponeShortest, postponeLongest), now)
	}
}
