package worker

import (
	"math"
	"time"

	"tendril/internal/observe/window"
	"tendril/queue"
)

// pace measures the speed of deliveries and calls. Its durations, body and batch are moving averages; 0 means unknown.
type pace struct {
	service   time.Duration // of a delivery
	completed int           // deliveries with a response
	roundTrip time.Duration // of a receive that did not wait
	call      time.Duration // of a delete
	body      float64       // bytes per message
	batch     float64       // messages per delivery; 0 counts as one
	finished  time.Time     // of the last delivery
	calls     history       // receives that did not wait, and deletes
	trips     history       // receives that did not wait
}

func newPace() *pace { return &pace{calls: newHistory(callStep), trips: newHistory(callStep)} }

const slowApp = time.Second

const averageOver = 16

// recordDelivery averages the first samples equally, because the fastest of concurrent deliveries end first.
func (p *pace) recordDelivery(d time.Duration, now time.Time) {
	p.completed++
	p.service = max(p.service+(d-p.service)/time.Duration(min(p.completed, averageOver)), 1)
	p.finished = now
}

// isRoundTrip means that the previous response was full, so d is exactly one round trip.
func (p *pace) recordReceive(d time.Duration, isRoundTrip bool, now time.Time) {
	if isRoundTrip {
		p.roundTrip = average(p.roundTrip, min(d, 10*time.Second))
	}
	p.calls.add(d, now)
	p.trips.add(d, now)
}

func (p *pace) canBeRoundTrip(d time.Duration, now time.Time) bool {
	most := p.calls.sum(now).most
	return most == 0 || d <= 4*most
}

func (p *pace) recordDelete(d time.Duration, now time.Time) {
	p.call = average(p.call, min(d, 10*time.Second))
	p.calls.add(d, now)
}

func average[T float64 | time.Duration](old, sample T) T {
	if old == 0 {
		return max(sample, 1)
	}
	return old + (sample-old)/averageOver
}

func (p *pace) longestTransit(visibility time.Duration) time.Duration {
	usual := time.Second
	if p.roundTrip > 0 {
		usual = max(3*p.roundTrip, 250*time.Millisecond)
	}
	return min(usual, visibility/4)
}

// rate is in messages per second with limit concurrent deliveries; 0 if unknown.
func (p *pace) rate(limit int) float64 {
	if p.service == 0 {
		return 0
	}
	return float64(limit) * max(p.batch, 1) / p.service.Seconds()
}

// prefetch returns how many messages to hold beyond those in flight: enough for one and a half round trips, and up
// to ten more to request full batches. It is 0 unless the app has just responded fast.
func (p *pace) prefetch(limit int, o *Options, now time.Time) int {
	if !p.isFast(now) {
		return 0
	}
	return p.prefetchAtRate(p.rate(limit), o)
}

func (p *pace) isFast(now time.Time) bool {
	return p.service > 0 && p.service < slowApp && now.Sub(p.finished) < slowApp
}

// rate is in messages per second. A few fast responses prove little, so the result is at most twice the completed
// messages.
func (p *pace) prefetchAtRate(rate float64, o *Options) int {
	n := math.Ceil(1.5*rate*p.roundTrip.Seconds()) + math.Min(queue.MaxBatch, math.Floor(rate/10))
	n = math.Min(n, rate*o.VisibilityTimeout.Seconds()/8)
	n = math.Min(n, 2*float64(p.completed)*max(p.batch, 1))
	if p.body > 0 {
		n = math.Min(n, float64(o.PrefetchBytes)/p.body)
	}
	return int(math.Min(n, maxPrefetch))
}

const maxPrefetch = 5000

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

type history struct{ window *window.Window[durations] }

const (
	turnStep     = 10 * time.Second
	callStep     = 5 * time.Second
	historySteps = 6
)

func newHistory(step time.Duration) history {
	return history{window.New[durations](step, historySteps)}
}

func (h history) add(d time.Duration, now time.Time) {
	if recent := h.window.At(now); recent != nil {
		recent.add(max(d, 1))
	}
}

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
