// Package eventlog stores the events of an environment on disk and the last lines of its log in memory.
//
//	Add --> tail (memory) --> writer --> events.ndjson --> events.1.ndjson
//	          |                                |
//	          '------------> Read <------------'
//
// Failed deliveries have their own log ([OpenFailures]). [Endings] records how each message left its queue.
//
// # Invariants
//
//   - Add never blocks and never fails. While the disk is not writable, the newest events stay in memory.
//   - The log has at most two files of 4 MiB. When the first is full, it replaces the second.
//   - IDs increase, even across restarts. Written events survive kill -9; a truncated line is skipped.
package eventlog
