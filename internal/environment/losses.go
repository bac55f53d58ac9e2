package environment

import (
	"cmp"
	"strconv"
	"sync"
	"time"

	"tendril/internal/observe/event"
)

const lossInterval = 10 * time.Second

const (
	deadText    = "messages dead-lettered"
	expiredText = "messages past their retention period deleted"
)

// losses groups lost messages, so that a thousand of them produce one event.
type losses struct {
	events event.Listener

	mu      sync.Mutex
	waiting map[lossKey]*lossGroup
}

type lossKey struct{ text, queue string }

type lossGroup struct {
	to, reason string
	messages   int
	timer      *time.Timer
}

func (l *losses) addLoss(text, from, to, reason string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := lossKey{text, from}
	g := l.waiting[key]
	if g == nil {
		if l.waiting == nil {
			l.waiting = map[lossKey]*lossGroup{}
		}
		g = &lossGroup{timer: time.AfterFunc(lossInterval, func() { l.reportGroup(key) })}
		l.waiting[key] = g
	}
	g.to, g.reason = to, cmp.Or(reason, g.reason)
	g.messages += n
}

func (l *losses) reportGroup(key lossKey) {
	l.mu.Lock()
	g := l.waiting[key]
	delete(l.waiting, key)
	l.mu.Unlock()
	if g == nil {
		return
	}
	fields := map[string]string{"queue": key.queue, "messages": strconv.Itoa(g.messages)}
	if g.to != "" {
		fields["dead_letter_queue"] = g.to
	}
	if g.reason != "" {
		fields["reason"] = g.reason
	}
	l.events.Happened(event.Event{Kind: event.DeadLetter, Text: key.text, Fields: fields})
}

func (l *losses) flush() {
	l.mu.Lock()
	var keys []lossKey
	for key, g := range l.waiting {
		g.timer.Stop()
		keys = append(keys, key)
	}
	l.mu.Unlock()
	for _, key := range keys {
		l.reportGroup(key)
	}
}
