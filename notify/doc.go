// Package notify tells systemd how the service is doing.
//
//	READY, RELOADING, STOPPING, STATUS  --+
//	EXTEND_TIMEOUT_USEC                 --+--> one datagram --> $NOTIFY_SOCKET --> systemd
//	Watchdog: alive? --> WATCHDOG       --+
//
// A unit of Type=notify is up once it has said so, not once its program was
// started: [Systemd.Ready] lets "systemctl start" return, and what is ordered
// after the unit start. [Systemd.Stopping] and [Systemd.Extend] give a long
// drain its time, [Systemd.Status] is the text that "systemctl status" shows,
// and [Systemd.Watchdog] has systemd restart a process that hangs.
//
// # Invariants
//
//   - Without NOTIFY_SOCKET nothing is sent and nothing fails: every method may
//     be called anywhere, also where there is no systemd.
//   - Messages arrive in the order of the calls of one goroutine.
//   - A call takes two seconds at most, also when systemd reads no more, and at
//     most one goroutine waits for it.
//   - A status is one line of at most [MaxStatus] bytes of UTF-8, whatever text
//     it was made of: no text can pass for another message.
//   - The watchdog is told only after the caller's check said yes. A check that
//     hangs counts as no.
//
// # When something fails
//
// A message that does not reach systemd changes nothing for the service: it is
// reported by [Events.Unsent], once until one arrives again. systemd then acts on
// its own limits: TimeoutStartSec without a READY, WatchdogSec without a
// WATCHDOG.
//
// # What it does not do
//
// It takes no sockets from systemd and reads no credentials. It does not remove the
// variables from the process's own environment, since they are read again for
// each message: what starts other programs does, with [WithoutVariables].
package notify
