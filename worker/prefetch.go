package worker

import (
	"math"
	"time"

	"tendril/queue"
)

// pace is what the worker knows of the speed of the app and of the queue.
// Both are moving averages; 0 means not known yet.
type pace struct {
	service   time.Duration // of one delivery
	roundTrip time.Duration // of one receive that did not have to wait
	body      float64       // bytes of one message
	finished  time.Time     // the last end of a delivery
}

// slowApp is the time for one message from which on nothing is prefetched.
const slowApp = time.Second

// served takes the duration of one delivery that ended now.
func (p *pace) served(d time.Duration, now time.Time) {
	p.service = average(p.service, d)
	p.finished = now
}

// travelled takes the duration of one receive from a queue that had plenty.
func (p *pace) travelled(d time.Duration) {
	p.roundTrip = average(p.roundTrip, min(d, 10*time.Second))
}

// weighed takes the size of one message body.
func (p *pace) weighed(bytes int) {
	if p.body == 0 {
		p.body = float64(bytes)
	}
	p.body += (float64(bytes) - p.body) / 16
}

func average(old, sample time.Duration) time.Duration {
	if old == 0 {
		return max(sample, 1)
	}
	return old + (sample-old)/16
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
	return float64(limit) / p.service.Seconds()
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
	rate := p.rate(limit)
	n := math.Ceil(1.5*rate*p.roundTrip.Seconds()) + math.Min(queue.MaxBatch, math.Floor(rate/10))
	n = math.Min(n, rate*o.VisibilityTimeout.Seconds()/8)
	if p.body > 0 {
		n = math.Min(n, float64(o.PrefetchBytes)/p.body)
	}
	return int(math.Min(n, maxPrefetch))
}

// maxPrefetch bounds the number of prefetched messages, whatever the figures say.
const maxPrefetch = 5000

// longestHold is how long a received message may wait for a slot: three
// eighths of its visibility and at most 10 s. Then others may have it.
func longestHold(visibility time.Duration) time.Duration {
	return min(visibility*3/8, 10*time.Second)
}

// stale reports whether a message waited too long to be started now: it is
// given back instead, so that no delivery begins with less than half of the
// visibility left.
func (h *held) stale(visibility time.Duration, now time.Time) bool {
	return now.Sub(h.readyAt) >= longestHold(visibility) || now.Sub(h.hiddenFrom) >= visibility/2
}

// lineup is the queue of messages that may be started: first in, first out.
type lineup struct {
	list  []*held
	head  int
	bytes int
}

func (l *lineup) len() int { return len(l.list) - l.head }

func (l *lineup) push(h *held) {
	if l.head > 64 && l.head*2 > len(l.list) {
		n := copy(l.list, l.list[l.head:])
		clear(l.list[n:])
		l.list, l.head = l.list[:n], 0
	}
	l.list = append(l.list, h)
	l.bytes += len(h.msg.Body)
}

// first returns the head, nil when empty.
func (l *lineup) first() *held {
	if l.len() == 0 {
		return nil
	}
	return l.list[l.head]
}

// pop drops the head.
func (l *lineup) pop() {
	l.bytes -= len(l.list[l.head].msg.Body)
	l.list[l.head] = nil
	l.head++
	if l.head == len(l.list) {
		l.list, l.head = l.list[:0], 0
	}
}
