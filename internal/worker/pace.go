package worker

import (
	"math"
	"time"

	"tendril/internal/observe/window"
	"tendril/queue"
)

// pace is the speed of the app and of the queue, as moving averages; 0 means not
// known yet.
type pace struct {
	service   time.Duration // of one delivery
	completed int           // deliveries that the app answered
	roundTrip time.Duration // of one receive that did not have to wait
	call      time.Duration // of one delete
	body      float64       // bytes of one message
	batch     float64       // messages of one delivery; 0 means one
	finished  time.Time     // the last end of a delivery
	calls     history       // the receives and deletes that did not have to wait
	trips     history       // the receives among them
}

func newPace() *pace { return &pace{calls: newHistory(callStep), trips: newHistory(callStep)} }

// slowApp is the time for one message from which on nothing is prefetched.
const slowApp = time.Second

// averaged is how many samples a moving average is about.
const averaged = 16

// served takes the duration of one delivery that ended now. The average of the first ones is
// their mean: the fastest of several that began together end first.
func (p *pace) served(d time.Duration, now time.Time) {
	p.completed++
	p.service = max(p.service+(d-p.service)/time.Duration(min(p.completed, averaged)), 1)
	p.finished = now
}

// travelled takes the duration of one receive that did not have to wait; plenty
// tells that neither had the one before, so that it is one round trip for certain.
func (p *pace) travelled(d time.Duration, plenty bool, now time.Time) {
	if plenty {
		p.roundTrip = average(p.roundTrip, min(d, 10*time.Second))
	}
	p.calls.add(d, now)
	p.trips.add(d, now)
}

// credible reports whether a receive that was not awaited to its end may have
// been under way all that time: what was sent before it may also have become
// visible later. Other calls were then about as slow, or none is known.
func (p *pace) credible(d time.Duration, now time.Time) bool {
	most := p.calls.sum(now).most
	return most == 0 || d <= 4*most
}

// called takes the duration of one call that does not wait for messages.
func (p *pace) called(d time.Duration, now time.Time) {
	p.call = average(p.call, min(d, 10*time.Second))
	p.calls.add(d, now)
}

// average is a moving average after one more sample.
func average[T float64 | time.Duration](old, sample T) T {
	if old == 0 {
		return max(sample, 1)
	}
	return old + (sample-old)/averaged
}

// travel is the longest time that the answer of a receive is taken to have
// been on its way, which the visibility clock ran already.
func (p *pace) travel(visibility time.Duration) time.Duration {
	usual := time.Second
	if p.roundTrip > 0 {
		usual = max(3*p.roundTrip, 250*time.Millisecond)
	}
	return min(usual, visibility/4)
}

// rate returns how many messages a second the app takes on so many slots; 0
// when not known.
func (p *pace) rate(limit int) float64 {
	if p.service == 0 {
		return 0
	}
	return float64(limit) * max(p.batch, 1) / p.service.Seconds()
}

// prefetch returns how many messages to hold beyond those in work, when limit
// deliveries may run at once: what the app takes during one round trip to the
// queue and a half, and enough on top to receive in tens, as long as ten
// start within a tenth of a second. None before the app's speed is known, when
// it takes a second or more for a message, or when nothing has ended for that long.
func (p *pace) prefetch(limit int, o *Options, now time.Time) int {
	if p.service == 0 || p.service >= slowApp || now.Sub(p.finished) >= slowApp {
		return 0
	}
	return p.ahead(p.rate(limit), o)
}

// ahead is prefetch for an app that takes rate messages a second. It is at most twice what
// has been completed: a few fast answers do not show that the next ones are as fast.
func (p *pace) ahead(rate float64, o *Options) int {
	n := math.Ceil(1.5*rate*p.roundTrip.Seconds()) + math.Min(queue.MaxBatch, math.Floor(rate/10))
	n = math.Min(n, rate*o.VisibilityTimeout.Seconds()/8)
	n = math.Min(n, 2*float64(p.completed)*max(p.batch, 1))
	if p.body > 0 {
		n = math.Min(n, float64(o.PrefetchBytes)/p.body)
	}
	return int(math.Min(n, maxPrefetch))
}

// maxPrefetch bounds the number of prefetched messages, whatever the figures say.
const maxPrefetch = 5000

// durations are the count, the shortest and the longest of some durations, all 0 if there are none.
type durations struct {
	count       int64
	least, most time.Duration
}

func (d *durations) add(one time.Duration) {
	if d.count == 0 {
		d.least = one
	}
	d.count++
	d.least = min(d.least, one)
	d.most = max(d.most, one)
}

// history is the durations of the recent past.
type history struct{ window *window.Window[durations] }

// Turns are remembered for a minute, calls of the queue for half as long.
const (
	turnStep     = 10 * time.Second
	callStep     = 5 * time.Second
	historySteps = 6
)

func newHistory(step time.Duration) history {
	return history{window.New[durations](step, historySteps)}
}

// add takes one duration.
func (h history) add(d time.Duration, now time.Time) {
	if recent := h.window.At(now); recent != nil {
		recent.add(max(d, 1))
	}
}

// sum returns the count and the extremes of all.
func (h history) sum(now time.Time) (all durations) {
	for d := range h.window.Recent(now) {
		if all.count == 0 || d.count > 0 && d.least < all.least {
			all.least = d.least
		}
		all.count += d.count
		all.most = max(all.most, d.most)
	}
	return all
}
