package app

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// brokenAfter is how many different messages must crash the app in a row,
	// without one that it survives, before the app itself counts as broken.
	brokenAfter = 10
	// maxQuarantined is the number of messages that are remembered.
	maxQuarantined = 10_000
)

// DetectorEvents are the listeners of a [Detector]; every field may be nil.
type DetectorEvents struct {
	// Quarantined: messages were in work on a replica when it crashed.
	Quarantined func(ids []string)
	// Cleared: a quarantined message was delivered alone, and the app survived.
	Cleared func(id string)
	// Detected: a message crashed the app while it was the only one in work;
	// crashes counts how often it has done so.
	Detected func(id string, crashes int)
	// Broken: one message after the other crashes the app, so the app itself is
	// broken; or, with false, it works again.
	Broken func(broken bool)
}

// Detector remembers which messages may crash the app. Make one with [NewDetector]; its
// methods are safe for concurrent use.
type Detector struct {
	events DetectorEvents

	mu          sync.Mutex
	quarantined map[string]*message
	streak      int // different messages that crashed the app since it last survived one
	broken      bool
	// idle is true while nothing is quarantined and streak is 0, so that most
	// deliveries need no lock.
	idle atomic.Bool
}

// message is a quarantined message.
type message struct {
	since   time.Time
	crashes int
}

// New returns a detector that reports to the listeners.
func NewDetector(events DetectorEvents) *Detector {
	d := &Detector{events: events, quarantined: map[string]*message{}}
	d.idle.Store(true)
	return d
}

// Quarantined reports whether a message must be delivered alone.
func (d *Detector) Quarantined(id string) bool {
	if d.idle.Load() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.quarantined[id] != nil
}

// Broken reports whether the app crashes on every message that it is given.
func (d *Detector) Broken() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

// DetectorStatus is a snapshot of a [Detector].
type DetectorStatus struct {
	// Quarantined counts the messages that are delivered alone, Poison those of
	// them that crashed the app alone.
	Quarantined, Poison int
	// Broken is the answer of [Detector.Broken].
	Broken bool
}

// Status returns the current counts.
func (d *Detector) Status() DetectorStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := DetectorStatus{Quarantined: len(d.quarantined), Broken: d.broken}
	for _, m := range d.quarantined {
		if m.crashes > 0 {
			s.Poison++
		}
	}
	return s
}

// Crashed reports that a replica of the app crashed at now with these messages in
// work. A single message is poison; several are quarantined.
func (d *Detector) Crashed(ids []string, now time.Time) {
	var notify []func()
	d.mu.Lock()
	switch {
	case len(ids) == 1:
		notify = d.detect(ids[0], now)
	case len(ids) > 1:
		for _, id := range ids {
			d.quarantine(id, now)
		}
		if on := d.events.Quarantined; on != nil {
			notify = append(notify, func() { on(ids) })
		}
	}
	d.updateIdle()
	d.mu.Unlock()
	for _, f := range notify {
		f()
	}
}

// detect counts a crash with a single message in work.
func (d *Detector) detect(id string, now time.Time) (notify []func()) {
	m := d.quarantine(id, now)
	m.crashes++
	crashes := m.crashes
	if on := d.events.Detected; on != nil {
		notify = append(notify, func() { on(id, crashes) })
	}
	if crashes == 1 {
		d.streak++
	}
	return append(notify, d.updateBroken()...)
}

// Survived reports that a delivery ended without a crash. When the replica had no
// other message, alone is true and the message leaves the quarantine.
func (d *Detector) Survived(id string, alone bool) {
	if d.idle.Load() {
		return
	}
	d.mu.Lock()
	cleared := alone && d.quarantined[id] != nil
	if cleared {
		delete(d.quarantined, id)
	}
	d.streak = 0
	notify := d.updateBroken()
	d.updateIdle()
	d.mu.Unlock()
	if on := d.events.Cleared; on != nil && cleared {
		on(id)
	}
	for _, f := range notify {
		f()
	}
}

// Forget drops a message that has left its queue.
func (d *Detector) Forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.quarantined, id)
	d.updateIdle()
}

func (d *Detector) quarantine(id string, now time.Time) *message {
	m := d.quarantined[id]
	if m == nil {
		if len(d.quarantined) >= maxQuarantined {
			d.forgetOldest()
		}
		m = &message{since: now}
		d.quarantined[id] = m
	}
	return m
}

func (d *Detector) forgetOldest() {
	oldest := ""
	for id, m := range d.quarantined {
		if oldest == "" || m.since.Before(d.quarantined[oldest].since) {
			oldest = id
		}
	}
	delete(d.quarantined, oldest)
}

func (d *Detector) updateIdle() {
	d.idle.Store(len(d.quarantined) == 0 && d.streak == 0 && !d.broken)
}

// updateBroken decides whether the app itself is broken.
func (d *Detector) updateBroken() (notify []func()) {
	broken := d.streak >= brokenAfter
	if broken == d.broken {
		return nil
	}
	d.broken = broken
	if on := d.events.Broken; on != nil {
		notify = append(notify, func() { on(broken) })
	}
	return notify
}
