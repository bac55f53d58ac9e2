package notify

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Events tell what happens between this process and systemd. Each may be nil,
// is called on the goroutine of the call that it is about, and should return
// soon.
type Events struct {
	// Unsent is called when a message did not reach systemd: the first of a
	// row, until one arrives again.
	Unsent func(Unsent)
	// Withheld is called when the watchdog is not told any more because the
	// process's own check said no: the first of a row. systemd ends the process
	// when the check does not say yes within Within.
	Withheld func(Withheld)
}

// Unsent is a message that did not reach systemd.
type Unsent struct {
	// Message is what it said, such as READY=1, without a status.
	Message string
	// Err is why; never nil.
	Err error
}

// Withheld is a watchdog that was not told.
type Withheld struct {
	// Within is the time of the unit's WatchdogSec, counted from the last time
	// that the watchdog was told.
	Within time.Duration
}

// errDeaf means that systemd has stopped to read: its socket is full.
var errNotReading = errors.New("systemd does not read its notification socket")

// say sends assignments as one message, after those that are on their way. The
// sending has a goroutine of its own, because a write to a full socket waits
// for ever and the library sets it no limit.
func (s *Systemd) send(assignments ...string) {
	late := time.NewTimer(s.timeout)
	defer late.Stop()
	select {
	case s.sending <- struct{}{}:
	case <-late.C:
		s.reportError(assignments[0], errNotReading)
		return
	}
	sent := make(chan error, 1)
	go func() {
		defer func() { <-s.sending }()
		sent <- s.write(strings.Join(assignments, "\n"))
	}()
	late.Reset(s.timeout)
	select {
	case err := <-sent:
		s.reportError(assignments[0], err)
	case <-late.C:
		s.reportError(assignments[0], errNotReading)
	}
}

// tell reports the first failure of a row.
func (s *Systemd) reportError(assignment string, err error) {
	if err == nil {
		s.failing.Store(false)
		return
	}
	if s.failing.Swap(true) || s.events.Unsent == nil {
		return
	}
	if strings.HasPrefix(assignment, "STATUS=") {
		assignment = "STATUS"
	}
	s.events.Unsent(Unsent{Message: assignment, Err: fmt.Errorf("telling systemd %s: %w", assignment, err)})
}
