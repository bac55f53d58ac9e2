package health

import (
	"slices"
	"sync"
	"time"
)

// increases are how much counters rose in the last five minutes. The zero value knows no
// counter.
type increases struct{ byName map[string]*increase }

type increase struct {
	last, total int64
	marks       []mark
}

// mark is the total at one moment.
type mark struct {
	at    time.Time
	total int64
}

// within takes the value of a counter and returns by how much it rose in the
// last five minutes. before counts as its value before the first call. A
// counter that falls was reset to 0.
func (r *increases) within(name string, before, value int64, now time.Time) int64 {
	c := r.byName[name]
	if c == nil {
		if r.byName == nil {
			r.byName = map[string]*increase{}
		}
		c = &increase{last: before, marks: []mark{{now, 0}}}
		r.byName[name] = c
	}
	c.total += max(value-c.last, 0)
	c.last = value
	if last := &c.marks[len(c.marks)-1]; len(c.marks) > 1 && now.Sub(last.at) < time.Second {
		last.total = c.total // asked often: one mark for each second is enough
	} else {
		c.marks = append(c.marks, mark{now, c.total})
	}
	// The last mark that is old enough is what to count from.
	from := 0
	for from+1 < len(c.marks) && now.Sub(c.marks[from+1].at) >= recent {
		from++
	}
	c.marks = slices.Delete(c.marks, 0, from)
	return c.total - c.marks[0].total
}

// pollFailure is why one queue does not answer.
type pollFailure struct {
	since time.Time
	text  string
	final bool
}

// pollFailures are the queues that do not answer. The zero value has none. It is safe for
// concurrent use.
type pollFailures struct {
	mu      sync.RWMutex
	byQueue map[string]pollFailure
}

func (p *pollFailures) add(queue, text string, final bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byQueue == nil {
		p.byQueue = map[string]pollFailure{}
	}
	f, again := p.byQueue[queue]
	if !again {
		f.since = now
	}
	f.text, f.final = text, final
	p.byQueue[queue] = f
}

// remove is called for each answer, mostly when there is nothing to remove.
func (p *pollFailures) remove(queue string) {
	if _, failing := p.of(queue); failing {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.byQueue, queue)
	}
}

func (p *pollFailures) of(queue string) (f pollFailure, failing bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	f, failing = p.byQueue[queue]
	return f, failing
}
