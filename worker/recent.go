package worker

import "time"

// recent counts things of the last minute, and knows the largest of them. It
// forgets in steps of ten seconds.
type recent struct {
	buckets [6]bucket
}

type bucket struct {
	number  int64 // of the ten seconds that it stands for, since 1970
	count   int64
	largest time.Duration
}

const bucketSeconds = 10

// add counts one thing of the given size.
func (r *recent) add(now time.Time, size time.Duration) {
	n := now.Unix() / bucketSeconds
	b := &r.buckets[n%int64(len(r.buckets))]
	if b.number != n {
		*b = bucket{number: n}
	}
	b.count++
	b.largest = max(b.largest, size)
}

// sum returns how many things there were, and the largest.
func (r *recent) sum(now time.Time) (count int64, largest time.Duration) {
	oldest := now.Unix()/bucketSeconds - int64(len(r.buckets))
	for _, b := range r.buckets {
		if b.number > oldest {
			count += b.count
			largest = max(largest, b.largest)
		}
	}
	return count, largest
}

// lately remembers the shortest and the longest of the times of the last 15 to
// 30 seconds. The zero value has seen nothing.
type lately struct {
	since           time.Time
	before, present extent // of the last span and of this one
}

// latelySpan is the half of what is remembered at the most.
const latelySpan = 15 * time.Second

// extent is the shortest and the longest of some times; both 0 for none.
type extent struct {
	least, most time.Duration
}

// add takes one sample.
func (l *lately) add(d time.Duration, now time.Time) {
	l.roll(now)
	d = max(d, 1)
	if p := &l.present; p.most == 0 {
		*p = extent{least: d, most: d}
	} else {
		*p = extent{least: min(p.least, d), most: max(p.most, d)}
	}
}

// extent returns the shortest and the longest.
func (l *lately) extent(now time.Time) extent {
	l.roll(now)
	e := l.present
	if b := l.before; b.most > 0 {
		e.most = max(e.most, b.most)
		if e.least == 0 || b.least < e.least {
			e.least = b.least
		}
	}
	return e
}

func (l *lately) roll(now time.Time) {
	switch age := now.Sub(l.since); {
	case age < latelySpan:
	case age < 2*latelySpan:
		l.since, l.before, l.present = now, l.present, extent{}
	default:
		l.since, l.before, l.present = now, extent{}, extent{}
	}
}
