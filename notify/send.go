package notify

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Events are the listeners of a [Systemd]. Each may be nil, runs on the goroutine
// of the call that it is about, and should return soon.
type Events struct {
	// SendFailed: a message did not reach systemd. Only the first failure of a
	// series is reported. The error names the message without its text.
	SendFailed func(err error)
	// WatchdogSkipped: the watchdog is no longer notified because the check
	// returned false. Only the first of a series is reported. systemd ends the process
	// unless the check returns true in time; within is the unit's WatchdogSec, counted
	// from the last notification.
	WatchdogSkipped func(within time.Duration)
}

// errNotReading means that systemd has stopped reading: its socket is full.
var errNotReading = errors.New("systemd does not read its notification socket")

// send sends assignments as one message, after the message that is being sent. The
// write has its own goroutine, because a write to a full socket blocks and the
// library sets no deadline.
func (s *Systemd) send(assignments ...string) {
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	select {
	case s.sending <- struct{}{}:
	case <-timer.C:
		s.report(assignments[0], errNotReading)
		return
	}
	written := make(chan error, 1)
	go func() {
		defer func() { <-s.sending }()
		written <- s.write(strings.Join(assignments, "\n"))
	}()
	timer.Reset(s.timeout)
	select {
	case err := <-written:
		s.report(assignments[0], err)
	case <-timer.C:
		s.report(assignments[0], errNotReading)
	}
}

// report reports the first failure of a series.
func (s *Systemd) report(assignment string, err error) {
	if err == nil {
		s.failing.Store(false)
		return
	}
	if s.failing.Swap(true) || s.events.SendFailed == nil {
		return
	}
	if strings.HasPrefix(assignment, "STATUS=") {
		assignment = "STATUS"
	}
	s.events.SendFailed(fmt.Errorf("sending %s to systemd: %w", assignment, err))
}
