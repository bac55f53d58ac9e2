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

// Events are callbacks; each may be nil. They run on the calling goroutine and should return quickly.
type Events struct {
	// SendFailed is called for the first of a series of failures. The error does not contain the message.
	SendFailed func(err error)
	// WatchdogSkipped is called for the first of a series of failed checks. If the series lasts longer than within, the
	// unit's WatchdogSec, systemd kills the process.
	WatchdogSkipped func(within time.Duration)
}

// Systemd sends notifications to systemd, if it started the process. It is safe for concurrent use.
type Systemd struct {
	events Events
	write  func(message string) error
	// watchdogTimeout returns the unit's WatchdogSec; 0 means no watchdog.
	watchdogTimeout func() (time.Duration, error)
	// timeout limits the wait for an earlier message, and the wait for systemd.
	timeout time.Duration
	sending chan struct{}
	failing atomic.Bool
}

// New returns a [Systemd] for this process.
func New(events Events) *Systemd {
	return &Systemd{
		events:          events,
		write:           func(message string) error { _, err := daemon.SdNotify(false, message); return err },
		watchdogTimeout: func() (time.Duration, error) { return daemon.SdWatchdogEnabled(false) },
		timeout:         time.Second, sending: make(chan struct{}, 1),
	}
}

// Ready reports that the service has started or reloaded. It must follow every [Systemd.Reloading], even if the new
// settings were rejected.
func (s *Systemd) Ready(status string) { s.send(daemon.SdNotifyReady, statusLine(status)) }

// Reloading reports that the service is reloading its settings.
func (s *Systemd) Reloading() {
	// With Type=notify-reload, the timestamp tells systemd which signal this answers.
	s.send(daemon.SdNotifyReloading, strings.TrimSuffix(daemon.SdNotifyMonotonicUsec(), "\n"))
}

// Stopping reports that the service is stopping, which starts TimeoutStopSec.
func (s *Systemd) Stopping() { s.send(daemon.SdNotifyStopping) }

// Status sets the unit's status text: one line of at most 1024 bytes.
func (s *Systemd) Status(text string) { s.send(statusLine(text)) }

// Extend asks systemd to allow at least by from now for the current start or stop. It does nothing if by <= 0.
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
		text = strings.ToValidUTF8(text[:maxStatus], "")
	}
	return "STATUS=" + text
}

var errNotReading = errors.New("systemd does not read its notification socket")

// send uses a separate goroutine, because the library blocks while the socket is full.
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

// WithoutVariables returns environ without systemd's notification variables, with which a child process could report
// itself as the service.
func WithoutVariables(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "NOTIFY_SOCKET" || name == "WATCHDOG_USEC" || name == "WATCHDOG_PID"
	})
}
