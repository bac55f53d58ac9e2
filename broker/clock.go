package broker

import "time"

// clock counts the nanoseconds since the broker was opened, by the monotonic
// clock, so that a step of the wall clock neither shortens nor lengthens a
// visibility timeout or a delay. What must outlive the process is written as
// Unix milliseconds, anchored at the wall clock's time of the opening.
type clock struct {
	start  time.Time
	anchor int64 // Unix milliseconds at start
}

func newClock() clock {
	now := time.Now()
	return clock{start: now, anchor: now.UnixMilli()}
}

// now returns the nanoseconds since the start.
func (c clock) now() int64 { return int64(time.Since(c.start)) }

// milli turns a reading of now into Unix milliseconds, rounded up: what is
// written never ends early.
func (c clock) milli(at int64) int64 {
	return c.anchor + (at+int64(time.Millisecond)-1)/int64(time.Millisecond)
}

// reading turns Unix milliseconds into a reading of now.
func (c clock) reading(milli int64) int64 { return (milli - c.anchor) * int64(time.Millisecond) }

// stamp is the wall clock's time in Unix milliseconds, for what people read:
// the sent and first-receive times, and the age that retention looks at.
func stamp() int64 { return time.Now().UnixMilli() }

// date turns a stamp into a time; the zero time for 0.
func date(milli int64) time.Time {
	if milli == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milli)
}

// floor turns a reading of now into the Unix milliseconds that have passed.
func (c clock) floor(at int64) int64 { return c.anchor + at/int64(time.Millisecond) }
