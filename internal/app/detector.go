package app

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tendril/internal/observe/event"
)

const (
	brokenAfter    = 10     // different messages in a row crash an app that is broken itself
	maxQuarantined = 10_000 // messages that are remembered
)

// detector remembers which messages may crash the app. Its methods are safe for concurrent use.
type detector struct {
	log *slog.Logger

	mu          sync.Mutex
	quarantined map[string]*crashRecord
	streak      int // different messages that crashed the app since it last survived one
	broken      bool
	// idle is true while nothing is quarantined and streak is 0, so that most
	// deliveries need no lock.
	idle atomic.Bool
}

// crashRecord is what is known about a quarantined message.
type crashRecord struct {
	since   time.Time
	crashes int // while it was the only message in work
}

func newDetector(log *slog.Logger) *detector {
	d := &detector{log: log, quarantined: map[string]*crashRecord{}}
	d.idle.Store(true)
	return d
}

// isQuarantined reports whether a message must be delivered alone.
func (d *detector) isQuarantined(id string) bool {
	if d.idle.Load() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.quarantined[id] != nil
}

// isBroken reports whether the app crashes on every message that it is given.
func (d *detector) isBroken() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

// PoisonStatus counts the messages that crash the app.
type PoisonStatus struct {
	Quarantined int  // are delivered alone
	Poison      int  // of them, crashed the app alone
	Broken      bool // the app crashes on every message that it is given
}

// poison counts the messages that crash the app.
func (d *detector) poison() PoisonStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := PoisonStatus{Quarantined: len(d.quarantined), Broken: d.broken}
	for _, m := range d.quarantined {
		if m.crashes > 0 {
			s.Poison++
		}
	}
	return s
}

// crashed records that a replica of the app crashed at now with these messages in
// work. A single message is poison; several are quarantined.
func (d *detector) crashed(ids []string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.update()
	for _, id := range ids {
		m := d.add(id, now)
		if len(ids) > 1 {
			continue
		}
		m.crashes++
		event.Health.Log(d.log, slog.LevelError, "poison message detected", "message_id", id, "crashes", m.crashes,
			"hint", "it is delivered alone until its queue dead-letters it")
		if m.crashes == 1 {
			d.streak++
		}
	}
	if len(ids) > 1 {
		d.log.Warn("app crashed, messages quarantined", "messages", len(ids))
	}
}

// survived records that a delivery ended without a crash. When the replica had no
// other message, alone is true and the message leaves the quarantine.
func (d *detector) survived(id string, alone bool) {
	if d.idle.Load() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if alone && d.quarantined[id] != nil {
		delete(d.quarantined, id)
		d.log.Debug("message left the quarantine", "message_id", id)
	}
	d.streak = 0
	d.update()
}

// forget drops what is known about a message that has left its queue.
func (d *detector) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.quarantined, id)
	d.update()
}

func (d *detector) add(id string, now time.Time) *crashRecord {
	m := d.quarantined[id]
	if m == nil {
		if len(d.quarantined) >= maxQuarantined {
			d.forgetOldest()
		}
		m = &crashRecord{since: now}
		d.quarantined[id] = m
	}
	return m
}

func (d *detector) forgetOldest() {
	oldest := ""
	for id, m := range d.quarantined {
		if oldest == "" || m.since.Before(d.quarantined[oldest].since) {
			oldest = id
		}
	}
	delete(d.quarantined, oldest)
}

// update decides whether the app itself is broken, and whether there is anything to remember.
func (d *detector) update() {
	switch broken := d.streak >= brokenAfter; {
	case broken == d.broken:
	case broken:
		d.broken = true
		event.Health.Log(d.log, slog.LevelError, "app crashes on every message", "hint", "it is restarted like an app that crashes without a message")
	default:
		d.broken = false
		event.Health.Log(d.log, slog.LevelInfo, "app survives messages again")
	}
	d.idle.Store(len(d.quarantined) == 0 && d.streak == 0)
}
