package worker

import (
	"time"

	"tendril/queue"
)

const (
	askLimiterAgain = 100 * time.Millisecond
	// A limited period ends after limitedCalm without a refusal, so that not every refusal of a rate limit is
	// reported.
	limitedCalm   = time.Second
	breakerReason = "breaker"
)

// The workers of a pool share a limiter's state, so that the pool's order decides which proceeds.
type sharedLimiter struct {
	limiter Limiter
	// After a refusal, the limiter is asked again at askAt or, with onRelease, already when a delivery ends.
	askAt     time.Time
	onRelease bool
	// changes counts calls that invalidate a result of Room.
	changes int
}

type limiterState struct {
	shared *sharedLimiter
	core   *core
	pace   *pace

	limiting             bool
	reason               string
	since, until, calmAt time.Time

	// Room's result is valid at roomAt while roomChanges equals shared.changes.
	roomAt      time.Time
	roomChanges int
	roomCount   int
	roomReason  string
	lookAt      time.Time // when to call Room again
	// breakerSince is when Room first gave the breaker as its reason; zero if it gives another.
	breakerSince time.Time
}

func (l *limiterState) shares(other *limiterState) bool {
	return l != nil && other != nil && l.shared == other.shared
}

func (l *limiterState) refusing(now time.Time) bool {
	return l != nil && !l.shared.askAt.IsZero() && now.Before(l.shared.askAt)
}

// acquire returns a permit and how many of n messages it allows; 0 means that the limiter refuses.
func (l *limiterState) acquire(now time.Time, n int) (permit uint64, messages int) {
	if l.refusing(now) {
		return 0, 0
	}
	if n > 1 {
		room, _ := l.shared.limiter.Room(now, 0)
		n = clamp(room, 1, n)
	}

	l.shared.changes++
	permit, wait, reason := l.shared.limiter.Acquire(now, n)
	if permit == 0 {
		l.shared.onRelease = wait <= 0
		if l.shared.onRelease {
			wait = askLimiterAgain
		}
		l.shared.askAt = now.Add(wait)
		l.recordRefusal(now, wait, reason)
		return 0, 0
	}

	l.shared.askAt, l.shared.onRelease = time.Time{}, false
	l.endCalmPeriod(now)
	return permit, n
}

func (l *limiterState) release(now time.Time, permit uint64, results []queue.Result) {
	l.shared.limiter.Release(permit, now, results...)
	l.shared.changes++
	if l.shared.onRelease {
		l.shared.askAt, l.shared.onRelease = time.Time{}, false
	}
}

// limiterAhead is how far ahead messages are received under a limiter, enough for full batches of ten at 40 messages
// per second.
const limiterAhead = 250 * time.Millisecond

// ampleRoom is more than the queues of a pool use up.
const ampleRoom = 5000

// room returns ampleRoom without a limiter.
func (l *limiterState) room(now time.Time) int {
	if l == nil {
		return ampleRoom
	}
	if l.roomAt.Equal(now) && l.roomChanges == l.shared.changes {
		return l.roomCount
	}

	l.roomAt, l.roomChanges = now, l.shared.changes
	count, reason := l.shared.limiter.Room(now, limiterAhead+3*l.pace.roundTrip/2)
	l.roomCount, l.roomReason = max(count, 0), reason
	if reason != breakerReason {
		l.breakerSince = time.Time{}
	} else if l.breakerSince.IsZero() {
		l.breakerSince = now
	}
	return l.roomCount
}

func (l *limiterState) breakerOpen(now time.Time) bool {
	return l != nil && l.room(now) == 0 && l.roomReason == breakerReason
}

func (l *limiterState) recordRefusal(now time.Time, wait time.Duration, reason string) {
	l.until = now.Add(wait)
	l.calmAt = l.until.Add(limitedCalm)
	if l.limiting && (l.reason == reason || now.Sub(l.since) < limitedCalm) {
		return
	}
	if l.limiting {
		l.endPeriod(now)
	}

	l.limiting = true
	l.reason = reason
	l.since = now
	l.core.counts.Limited++
	notify(l.core, l.core.events.Limited, Limited{Reason: reason})
}

// The limiter does not report new room, so askAgainLater schedules another call.
func (l *limiterState) askAgainLater(now time.Time) {
	if !now.Before(l.lookAt) {
		l.lookAt = now.Add(askLimiterAgain)
	}
	l.core.wakeAt(l.lookAt)
}

func (l *limiterState) endCalmPeriod(now time.Time) {
	if l.limiting && !now.Before(l.calmAt) {
		l.endPeriod(l.until)
	}
}

func (l *limiterState) endPeriod(at time.Time) {
	l.limiting = false
	notify(l.core, l.core.events.Limited, Limited{Reason: l.reason, Over: true, For: at.Sub(l.since)})
}

func (l *limiterState) addStatus(s *Status, now time.Time) {
	if l.limiting {
		s.LimitedBy = l.reason
	}
	if l.breakerOpen(now) {
		s.Receiving = false
		s.LimitedBy = breakerReason
		s.Reasons = append(s.Reasons, Reason{Block: BreakerOpen, Text: "the breaker is open", Since: l.breakerSince})
	}
}
