package notify

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Options configure a [Systemd]. The zero value reports nothing to anybody but
// systemd.
type Options struct {
	// Events are told what went wrong.
	Events Events
}

// Systemd speaks to the service manager that started this process, if one did.
// Its methods may be called from several goroutines.
type Systemd struct {
	events Events
	// send delivers one message, limit is the watchdog's time, 0 for none.
	write  func(message string) error
	watchdogTimeout func() (time.Duration, error)
	// patience is how long a call waits for its turn, and how long for systemd.
	timeout time.Duration
	sending     chan struct{} // holds one token while a message is on its way
	failing  atomic.Bool
}

// New returns a way to systemd; nil options are the zero value.
func New(opts *Options) *Systemd {
	s := &Systemd{
		write: func(message string) error {
			_, err := daemon.SdNotify(false, message)
			return err
		},
		watchdogTimeout:    func() (time.Duration, error) { return daemon.SdWatchdogEnabled(false) },
		timeout: time.Second,
		sending:     make(chan struct{}, 1),
	}
	if opts != nil {
		s.events = opts.Events
	}
	return s
}

// Ready says that the service is up, or has been reloaded, with a status to
// show. Call it after the start, and after each [Systemd.Reloading].
func (s *Systemd) Ready(status string) { s.send(daemon.SdNotifyReady, statusLine(status)) }

// Reloading says that the service reads its settings again. [Systemd.Ready] must
// follow, also when the settings were refused: until then systemd holds the unit
// for one that reloads.
func (s *Systemd) Reloading() {
	// The time tells a unit of Type=notify-reload that this answers its signal.
	s.send(daemon.SdNotifyReloading, strings.TrimSuffix(daemon.SdNotifyMonotonicUsec(), "\n"))
}

// Stopping says that the service has begun to stop by itself or was asked to.
// From then on systemd counts TimeoutStopSec, if it did not before.
func (s *Systemd) Stopping() { s.send(daemon.SdNotifyStopping) }

// Status sets the text that is shown with the unit. Control characters become
// spaces, and what is beyond [MaxStatus] bytes is cut off; "" shows none.
func (s *Systemd) Status(text string) { s.send(statusLine(text)) }

// Extend asks systemd not to give up a start or a stop before by from now, even
// where TimeoutStartSec or TimeoutStopSec is shorter; it never shortens
// them. A start or stop that outlasts it is ended by systemd, unless Extend is called
// again before. A time of 0 or less asks for nothing.
func (s *Systemd) Extend(by time.Duration) {
	if by > 0 {
		s.send("EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(max(by.Microseconds(), 1), 10))
	}
}

// MaxStatus is the most bytes of a status; systemd reads 4096 of a message.
const MaxStatus = 1024

// statusLine makes any text one assignment.
func statusLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > MaxStatus {
		text = strings.ToValidUTF8(text[:MaxStatus], "") // half a character at the cut
	}
	return "STATUS=" + text
}
