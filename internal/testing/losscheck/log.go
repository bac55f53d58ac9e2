package losscheck

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Log records requests and acknowledgements. The zero value is empty. Its methods are safe for concurrent use.
type Log struct {
	mu       sync.Mutex
	messages map[string]message
	attempts bool // Sending was called, so unknown messages are a problem
}

type message struct{ sending, sent, deleting, deleted bool }

// Sending records that a message is about to be sent.
func (l *Log) Sending(key string) {
	l.update(key, func(m *message) {
		m.sending = true
		l.attempts = true
	})
}

// Sent records that a send was acknowledged.
func (l *Log) Sent(key string) { l.update(key, func(m *message) { m.sent = true }) }

// Deleting records that a message is about to be deleted or processed, so that it may disappear.
func (l *Log) Deleting(key string) { l.update(key, func(m *message) { m.deleting = true }) }

// Deleted records that a queue with durable deletes acknowledged a delete.
func (l *Log) Deleted(key string) { l.update(key, func(m *message) { m.deleted = true }) }

func (l *Log) update(key string, change func(m *message)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.messages == nil {
		l.messages = map[string]message{}
	}
	m := l.messages[key]
	change(&m)
	l.messages[key] = m
}

// Acknowledged returns the number of acknowledged sends and deletes.
func (l *Log) Acknowledged() (sends, deletes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.messages {
		if m.sent {
			sends++
		}
		if m.deleted {
			deletes++
		}
	}
	return sends, deletes
}

// Snapshot returns a copy of the log.
func (l *Log) Snapshot() *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &Log{messages: maps.Clone(l.messages), attempts: l.attempts}
}

// AddAttempts adds the requests since a snapshot, but not their acknowledgements, which a crash may have undone.
func (l *Log) AddAttempts(later *Log) {
	for key, m := range later.Snapshot().messages {
		if m.sending {
			l.Sending(key)
		}
		if m.deleting {
			l.Deleting(key)
		}
	}
}

// Check compares the log with the number of stored copies of each message, and returns the problems, sorted.
func (l *Log) Check(stored map[string]int) (problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, m := range l.messages {
		if m.sent && !m.deleting && stored[key] == 0 {
			problems = append(problems, fmt.Sprintf("%q was acknowledged, and is lost", key))
		}
	}
	for key, n := range stored {
		m := l.messages[key]
		switch {
		case n > 1:
			problems = append(problems, fmt.Sprintf("%q is there %d times", key, n))
		case n > 0 && l.attempts && !m.sending:
			problems = append(problems, fmt.Sprintf("%q is there, and was never sent", key))
		case n > 0 && m.deleted:
			problems = append(problems, fmt.Sprintf("%q is there, and its delete was acknowledged", key))
		}
	}
	slices.Sort(problems)
	return problems
}
