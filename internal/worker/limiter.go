package worker

import (
	"time"

	"tendril/queue"
)

const (
	// askLimiterAgain is how soon a limiter is asked again that named no time.
	askLimiterAgain = 100 * time.Millisecond
	// limitedCalm is how long no refusal must come until a time of limiting counts as
	// over, so that a rate which refuses now and then is one time and not thousands.
	limitedCalm = time.Second
	// breakerReason is the reason that stands for an app which is not asked at
	// all. Any other one comes and goes with each message.
	breakerReason = "breaker"
)

// sharedLimiter is a limiter with its latest answers. Workers of a pool that have
// the same limiter share it, so that the pool's order decides, and not the order of calls.
type sharedLimiter struct {
	limiter Limiter
	// askAt: nothing begins before, since the limiter refused; zero when it did
	// not. onDone: it wants to be asked after the next end of a delivery.
	askAt  time.Time
	onDone bool
	// changes counts the events that make an answer of Room old.
	changes int
}

// limiterState is a worker's view of its limiter; nil if nothing is limited.
type limiterState struct {
	shared *sharedLimiter
	core   *core
	pace   *pace

	// limiting is a time of refusals, from since until the latest one is over;
	// it ends when none comes until calmAt.
	limiting             bool
	reason               string
	since, until, calmAt time.Time
	periods              int64

	// roomAt, roomLeft and roomWhy are the latest answer of Room, roomSince the
	// changes of the limiter until then.
	roomAt    time.Time
	roomSince int
	roomLeft  int
	roomWhy   string
	lookAt    time.Time // when to ask for room again
}

// shares reports whether two states are of the same limiter.
func (l *limiterState) shares(other *limiterState) bool {
	return l != nil && other != nil && l.shared == other.shared
}

// refusing reports whether nothing may begin and the limiter need not be asked.
func (l *limiterState) refusing(now time.Time) bool {
	return l != nil && !l.shared.askAt.IsZero() && now.Before(l.shared.askAt)
}

// acquire asks for a permit for a delivery of up to n messages, and returns for how many it
// is, 0 for a refusal.
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
		// With no wait it is to be asked after the next end of a delivery.
		if l.shared.onDone = wait <= 0; l.shared.onDone {
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

// release gives back the permit of a delivery that ended.
func (l *limiterState) release(now time.Time, permit uint64, results []queue.Result) {
	l.shared.limiter.Release(permit, now, results...)
	l.shared.changes++
	if l.shared.onDone {
		l.shared.askAt, l.shared.onDone = time.Time{}, false
	}
}

// limiterAhead is how far the limiter is asked to look before a receive, besides its round
// trip: far enough to receive ten at a time from 40 a second on.
const limiterAhead = 250 * time.Millisecond

// room returns how many deliveries the limiter lets begin soon, of whichever queue.
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

// breakerOpen reports whether the breaker keeps the worker from receiving.
func (l *limiterState) breakerOpen(now time.Time) bool {
	return l != nil && l.room(now) == 0 && l.roomWhy == breakerReason
}

// keepBack notes that nothing more may come for a while.
func (l *limiterState) keepBack(now time.Time, wait time.Duration, reason string) {
	l.until, l.calmAt = now.Add(wait), now.Add(wait+limitedCalm)
	if l.limiting && (l.reason == reason || now.Sub(l.since) < limitedCalm) {
		return
	}
	if l.limiting {
		l.over(now)
	}
	l.limiting = true
	l.reason = reason
	l.since = now
	l.periods++
	notify(l.core, l.core.events.Limited, Limited{Reason: reason})
}

// calm ends a time of limiting after which nothing was refused for a while.
func (l *limiterState) calm(now time.Time) {
	if l.limiting && !now.Before(l.calmAt) {
		l.over(l.until)
	}
}

// over ends a time of limiting.
func (l *limiterState) over(at time.Time) {
	l.limiting = false
	notify(l.core, l.core.events.Limited, Limited{Reason: l.reason, Over: true, For: at.Sub(l.since)})
}
