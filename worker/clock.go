package worker

import "time"

// clock notices when the process stood still. The monotonic clock goes on
// while a process is stopped by a signal but stands still while its machine is
// suspended; the wall clock goes on in both but may also be set. So a gap
// shows as a monotonic step longer than the rhythm of the ticks, or as a wall
// clock that ran ahead of the monotonic one.
type clock struct {
	rhythm time.Duration // the longest time between two ticks of a healthy process
	last   time.Time     // the last tick
	stall  stall         // the latest time of standing still
}

// stall is one time of standing still.
type stall struct {
	from, until time.Time
	// hidden is how much longer it was than the monotonic clock shows.
	hidden time.Duration
}

// slack is how late a tick, and how far ahead a wall clock, may be.
const slack = time.Second

// tick takes the present time, at least once in each rhythm. It returns how long
// the process stood still before it, and how much of that the monotonic clock
// does not show; both are 0 when it did not.
func (c *clock) tick(now time.Time) (gap, hidden time.Duration) {
	if c.last.IsZero() {
		c.last = now
		return 0, 0
	}
	return c.step(now, now.Sub(c.last), now.Round(0).Sub(c.last.Round(0)))
}

// step is tick for given steps of the two clocks since the last one.
func (c *clock) step(now time.Time, mono, wall time.Duration) (gap, hidden time.Duration) {
	if mono < 0 {
		return 0, 0 // a time taken before the last tick's
	}
	last := c.last
	c.last = now
	if ahead := wall - mono; ahead > slack {
		hidden = ahead
	}
	if hidden == 0 && mono <= c.rhythm+slack {
		return 0, 0
	}
	c.stall = stall{from: last, until: now, hidden: hidden}
	return mono + hidden, hidden
}

// began returns when the visibility of messages began at the earliest that a
// receive called at start brought back now, when that receive spent at most
// travel on the way. A stall in between may have happened while the answer
// lay unread.
func (c *clock) began(start, now time.Time, travel time.Duration) time.Time {
	t := now.Add(-min(now.Sub(start), travel))
	if s := c.stall; start.Before(s.until) && !now.Before(s.until) {
		earliest := s.from
		if earliest.Before(start) {
			earliest = start
		}
		if t.After(earliest) {
			t = earliest
		}
		t = t.Add(-s.hidden)
	}
	return t
}
