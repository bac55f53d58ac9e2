// Package notify tells systemd about the state of the service.
//
//	READY, RELOADING, STOPPING, STATUS  --+
//	EXTEND_TIMEOUT_USEC                 --+--> one datagram --> $NOTIFY_SOCKET --> systemd
//	Watchdog: alive? --> WATCHDOG       --+
//
// A unit of Type=notify is up when it says so, not when its program starts:
// [Systemd.Ready] lets "systemctl start" return, and starts the units that are ordered
// after this one. [Systemd.Stopping] and [Systemd.Extend] give a long drain enough
// time, [Systemd.Status] sets the text that "systemctl status" shows, and
// [Systemd.Watchdog] has systemd restart a process that hangs.
//
// # Invariants
//
//   - Without NOTIFY_SOCKET nothing is sent and nothing fails: every method may be
//     called where there is no systemd.
//   - Messages of one goroutine arrive in the order of its calls.
//   - A call takes at most two seconds, even when systemd has stopped reading, and at
//     most one goroutine waits for it.
//   - A status is one line of at most 1024 bytes of UTF-8, whatever its text: no
//     text can pass for another message.
//   - The watchdog is notified only after the caller's check returned true. A check
//     that hangs counts as false.
//
// # When something fails
//
// A message that does not reach systemd changes nothing for the service. The first
// of a series of failures is reported by [Events.SendFailed]. systemd then applies its
// own limits: TimeoutStartSec without a READY, WatchdogSec without a WATCHDOG.
//
// # What it does not do
//
// It takes no sockets from systemd and reads no credentials. It leaves the variables
// in the process's own environment, because they are read for each message. A caller
// that starts other programs removes them with [WithoutVariables].
package notify
