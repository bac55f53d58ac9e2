// Package notify tells systemd about the state of the service.
//
//	READY, RELOADING, STOPPING, STATUS  --+
//	EXTEND_TIMEOUT_USEC                 --+--> one datagram --> $NOTIFY_SOCKET --> systemd
//	Watchdog: alive? --> WATCHDOG       --+
//
// A unit of Type=notify is up when it says so, not when its program starts. [Systemd.Ready] lets "systemctl start"
// return and starts dependent units. [Systemd.Stopping] and [Systemd.Extend] give a long drain enough time,
// [Systemd.Status] sets the text in "systemctl status", and [Systemd.Watchdog] makes systemd restart a process that
// hangs.
//
// # Invariants
//
//   - Without NOTIFY_SOCKET nothing is sent and nothing fails, so every method may be called without systemd.
//   - Messages of one goroutine arrive in call order.
//   - A call takes at most two seconds, even if systemd has stopped reading, and at most one goroutine waits for it.
//   - A status is one line of at most 1024 bytes of UTF-8. Its text cannot inject another message.
//   - The watchdog is notified only after the caller's check returned true. A check that hangs counts as false.
//
// # Failures
//
// If a message does not reach systemd, systemd applies its own limits: TimeoutStartSec without a READY, WatchdogSec
// without a WATCHDOG. [Events.SendFailed] reports the first of a series of failures.
//
// # Limits
//
// The package does not accept sockets or credentials from systemd. It keeps the variables in the environment, because
// each message reads them. Callers remove them for other programs with [WithoutVariables].
package notify
