// Package eventlog keeps what happened in an environment: events on disk, and the last lines of its log in memory.
//
// An [Event] is something that a person looks for later: a start, a deployment, a pause, a breaker that opened, an
// act of somebody. [Log] appends events to a file in the data directory, off the path of messages:
//
//	Add --> tail (memory) --> writer --> events.ndjson --> events.1.ndjson
//	          |                                |
//	          '------------> Read <------------'
//
// What holds:
//
//   - Add never blocks and never fails. While the disk takes nothing, the newest events wait in memory.
//   - The log has two files of 4 MiB at most. When the first is full it replaces the second.
//   - Ids grow, over restarts too. What was written survives kill -9; a line that was cut short is skipped.
//   - The text of an event is constant. What varies is in its fields, each cut at 1 KiB.
//
// The same is done with failed deliveries ([OpenFailures]), in files of their own, since there may be many.
//
// [Read] reads the files of an environment that does not run. [Lines] holds the last lines that tendril and the
// processes of the app wrote, 4,000 lines or 2 MiB, in memory only.
package eventlog
