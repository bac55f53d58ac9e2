package environment

import (
	"cmp"
	"strconv"
	"sync"
	"time"

	"tendril/eventlog"
)

// deadInterval is the least time between two events about dead letters of one queue.
const deadInterval = 10 * time.Second

// deadLetters counts dead letters, so that a thousand of them are one event.
type deadLetters struct {
	record func(kind, text string, fields map[string]string)

	mu      sync.Mutex
	waiting map[string]*deadGroup // by queue
}

// deadGroup is what was dead-lettered from a queue since the first one.
type deadGroup struct {
	to, reason string // the last one's
	messages   int
	timer      *time.Timer
}

// add counts n messages of a queue that went to another one. reason may be "".
func (d *deadLetters) add(from, to, reason string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.waiting[from]
	if g == nil {
		if d.waiting == nil {
			d.waiting = map[string]*deadGroup{}
		}
		g = &deadGroup{timer: time.AfterFunc(deadInterval, func() { d.end(from) })}
		d.waiting[from] = g
	}
	g.to, g.reason = to, cmp.Or(reason, g.reason)
	g.messages += n
}

// end records the group of a queue.
func (d *deadLetters) end(from string) {
	d.mu.Lock()
	g := d.waiting[from]
	delete(d.waiting, from)
	d.mu.Unlock()
	if g == nil {
		return
	}
	fields := map[string]string{"queue": from, "dead_letter_queue": g.to, "messages": strconv.Itoa(g.messages)}
	if g.reason != "" {
		fields["reason"] = g.reason
	}
	d.record(eventlog.DeadLetter, "messages dead-lettered", fields)
}

// flush records all groups.
func (d *deadLetters) flush() {
	d.mu.Lock()
	var queues []string
	for name, g := range d.waiting {
		g.timer.Stop()
		queues = append(queues, name)
	}
	d.mu.Unlock()
	for _, name := range queues {
		d.end(name)
	}
}
