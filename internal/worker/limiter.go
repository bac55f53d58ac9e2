package worker

import (
	"time"

	"tendril/queue"
)

const (
	askLimiterAgain = 100 * time.Millisecond
	// A limited period ends limitedCalm after its last refusal, so that not every refusal of a rate limit is reported.
	limitedCalm   = time.Second
	breakerReason = "breaker"
)

// sharedLimiter is shared by the workers of a pool, so that the pool's order decides which worker proceeds.
type sharedLimiter struct {
	limiter Limiter
	// After a refusal, no delivery starts before askAt or, with onDone, before another delivery ends.
	askAt  time.Time
	onDone bool
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
	periods              int64

	// The result of Room is valid at roomAt while roomSince equals shared.changes.
	roomAt    time.Time
	roomSince int
	roomLeft  int
	roomWhy   string
	lookAt    time.Time // when to call Room again
}

func (l *limiterState) shares(other *limiterState) bool {
	return l != nil && other != nil && l.shared == other.shared
}

func (l *limiterState) refusing(now time.Time) bool {
	return l != nil && !l.shared.askAt.IsZero() && now.Before(l.shared.askAt)
}

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
		l.shared.onDone = wait <= 0
		if l.shared.onDone {
			wait = askLimiterAgain
		}
		l.shared.askAt = now.Add(wait)
		l.keepBack(now, wait, reason)
		return 0, 0
	}

	l.shared.askAt, l.shared.onDone = time.Time{}, false
	l.calm(now)
	return permit, n
}

func (l *limiterState) release(now time.Time, permit uint64, results []queue.Result) {
	l.shared.limiter.Release(permit, now, results...)
	l.shared.changes++
	if l.shared.onDone {
		l.shared.askAt, l.shared.onDone = time.Time{}, false
	}
}

// limiterAhead is enough to receive full batches of ten at 40 messages per second.
const limiterAhead = 250 * time.Millisecond

func (l *limiterState) room(now time.Time) int {
	if l == nil {
		return maxPrefetch
	}
	if !l.roomAt.Equal(now) || l.roomAt.IsZero() || l.roomSince != l.shared.changes {
		l.roomAt, l.roomSince = now, l.shared.changes
		l.roomLeft, l.roomWhy = l.shared.limiter.Room(now, limiterAhead+3*l.pace.roundTrip/2)
	}
	return max(l.roomLeft, 0)
}

func (l *limiterState) breakerOpen(now time.Time) bool {
	return l != nil && l.room(now) == 0 && l.roomWhy == breakerReason
}

func (l *limiterState) keepBack(now time.Time, wait time.Duration, reason string) {
	l.until, l.calmAt = now.Add(wait), now.Add(wait+limitedCalm)
	if l.limiting && (l.reason == reason || now.Sub(l.since) < limitedCalm) {
		return
	}
	if l.limiting {
		l.endPeriod(now)
	}
	l.limiting = true
	l.reason = reason
	l.since = now
	l.periods++
	notify(l.core, l.core.events.Limited, Limited{Reason: reason})
}

func (l *limiterState) calm(now time.Time) {
	if l.limiting && !now.Before(l.calmAt) {
		l.endPeriod(l.until)
	}
}

func (l *limiterState) endPeriod(at time.Time) {
	l.limiting = false
	notify(l.core, l.core.events.Limited, Limited{Reason: l.reason, Over: true, For: at.Sub(l.since)})
}
