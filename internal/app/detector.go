package app

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tendril/internal/observe/event"
)

const (
	brokenAfter    = 10 // different messages in a row, each crashed the app alone
	maxQuarantined = 10_000
)

// detector finds the messages that crash the app.
type detector struct {
	log *slog.Logger

	mu          sync.Mutex
	quarantined map[string]*crashRecord
	streak      int // different poison messages since the last success
	broken      bool
	// idle lets deliveries skip the lock if no message is quarantined and streak is 0.
	idle atomic.Bool
}

type delivered struct{ id, queue, task string }

func (m delivered) attributes(more ...any) []any {
	all := []any{"queue", m.queue, "message_id", m.id}
	if m.task != "" {
		all = append(all, "task", m.task)
	}
	return append(all, more...)
}

type crashRecord struct {
	message delivered
	since   time.Time
	crashes int
}

func newDetector(log *slog.Logger) *detector {
	d := &detector{log: log, quarantined: map[string]*crashRecord{}}
	d.idle.Store(true)
	return d
}

func (d *detector) isQuarantined(id string) bool {
	if d.idle.Load() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.quarantined[id] != nil
}

func (d *detector) isBroken() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

// PoisonStatus summarizes the messages that crash the app.
type PoisonStatus struct {
	Quarantined int  // delivered one at a time
	Poison      int  // crashed the app as the only message in flight
	Broken      bool // ten different poison messages in a row
}

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

// crashed quarantines the messages in flight. A single message in flight is poison.
func (d *detector) crashed(messages []delivered, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.updateState()

	if len(messages) == 1 {
		d.recordPoison(messages[0], now)
		return
	}
	for _, message := range messages {
		d.quarantine(message, now)
	}
	if len(messages) > 1 {
		d.log.Warn("app crashed, messages quarantined", "messages", len(messages))
	}
}

func (d *detector) recordPoison(message delivered, now time.Time) {
	m := d.quarantine(message, now)
	m.crashes++
	event.Health.Log(d.log, slog.LevelError, "poison message detected", message.attributes("crashes", m.crashes,
		"hint", "it is delivered alone until its queue dead-letters it")...)
	if m.crashes == 1 {
		d.streak++
	}
}

func (d *detector) survived(id string, alone bool) {
	if d.idle.Load() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.quarantined[id]; alone && m != nil {
		delete(d.quarantined, id)
		d.log.Debug("message left the quarantine", m.message.attributes()...)
	}
	d.streak = 0
	d.updateState()
}

func (d *detector) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.quarantined, id)
	d.updateState()
}

func (d *detector) quarantine(message delivered, now time.Time) *crashRecord {
	m := d.quarantined[message.id]
	if m == nil {
		if len(d.quarantined) >= maxQuarantined {
			d.forgetOldest()
		}
		m = &crashRecord{message: message, since: now}
		d.quarantined[message.id] = m
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

func (d *detector) updateState() {
	wasBroken := d.broken
	d.broken = d.streak >= brokenAfter
	if d.broken && !wasBroken {
		event.Health.Log(d.log, slog.LevelError, "app crashes on every message", "hint", "crashes count as failures of the app from now on; 'tendril logs' shows its output")
	}
	if wasBroken && !d.broken {
		event.Health.Log(d.log, slog.LevelInfo, "app no longer crashes on every message")
	}
	d.idle.Store(len(d.quarantined) == 0 && d.streak == 0)
}
