// Package notify tells systemd about the state of the service.
//
// # Invariants
//
//   - Without NOTIFY_SOCKET, methods do nothing and do not fail.
//   - Messages of one goroutine arrive in call order.
//   - A call takes at most two seconds, even if systemd has stopped reading, and at most one goroutine waits for it.
//   - A status is one line of at most 1024 bytes of UTF-8. Its text cannot inject another message.
//   - The watchdog is notified only after the caller's check returned true. A check that hangs counts as false.
//
// If a message is lost, systemd applies its own limits: TimeoutStartSec without a READY, WatchdogSec without a WATCHDOG.
package notify
