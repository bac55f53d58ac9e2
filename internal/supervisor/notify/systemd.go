package notify

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Events are callbacks, which may be nil. They run on the calling goroutine and should return soon.
type Events struct {
	// SendFailed reports the first of a series of messages that did not reach systemd. The error omits the message's
	// text.
	SendFailed func(err error)
	// WatchdogSkipped reports the first of a series of failed checks. systemd kills the process after within, the
	// unit's WatchdogSec since the last notification, unless the check returns true before.
	WatchdogSkipped func(within time.Duration)
}

// Systemd sends messages to the service manager, if any. It is safe for concurrent use.
type Systemd struct {
	events Events
	// watchdogTimeout returns the unit's WatchdogSec; may be 0.
	write           func(message string) error
	watchdogTimeout func() (time.Duration, error)
	// timeout limits both the wait for another message and the wait for systemd.
	timeout time.Duration
	sending chan struct{} // holds a token while a message is being sent
	failing atomic.Bool
}

// New returns a connection to systemd.
func New(events Events) *Systemd {
	return &Systemd{
		events:          events,
		write:           func(message string) error { _, err := daemon.SdNotify(false, message); return err },
		watchdogTimeout: func() (time.Duration, error) { return daemon.SdWatchdogEnabled(false) },
		timeout:         time.Second, sending: make(chan struct{}, 1),
	}
}

// Ready reports that the service has started or reloaded, and sets the status. It must follow each
// [Systemd.Reloading], even if the settings are rejected.
func (s *Systemd) Ready(status string) { s.send(daemon.SdNotifyReady, statusLine(status)) }

// Reloading reports that the service is reloading its settings.
func (s *Systemd) Reloading() {
	// The time identifies the signal of a Type=notify-reload unit that this answers.
	s.send(daemon.SdNotifyReloading, strings.TrimSuffix(daemon.SdNotifyMonotonicUsec(), "\n"))
}

// Stopping reports that the service is stopping. TimeoutStopSec counts from now unless it already does.
func (s *Systemd) Stopping() { s.send(daemon.SdNotifyStopping) }

// Status sets the unit's status text. Control characters become spaces, and text beyond 1024 bytes is truncated.
func (s *Systemd) Status(text string) { s.send(statusLine(text)) }

// Extend asks systemd to allow the current start or stop at least the given time from now. It never shortens
// TimeoutStartSec or TimeoutStopSec. A duration of 0 or less does nothing.
func (s *Systemd) Extend(by time.Duration) {
	if by > 0 {
		s.send("EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(max(by.Microseconds(), 1), 10))
	}
}

const maxStatus = 1024 // bytes; systemd reads 4096 per message

func statusLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > maxStatus {
		text = strings.ToValidUTF8(text[:maxStatus], "") // removes an incomplete last character
	}
	return "STATUS=" + text
}

var errNotReading = errors.New("systemd does not read its notification socket")

// A write to a full socket blocks and the library sets no deadline, so it has its own goroutine.
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

// WithoutVariables returns a copy of an environment without the variables of systemd's notification protocol. A child
// process with them could report itself as the service.
func WithoutVariables(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "NOTIFY_SOCKET" || name == "WATCHDOG_USEC" || name == "WATCHDOG_PID"
	})
}
