// Package eventlog stores the events of an environment on disk and the last lines of its log in memory.
//
// An [Event] is, for example, a start, a deployment, a pause, an opened breaker or a user's action. [Log] appends
// events to a file in the data directory without delaying messages:
//
//		Add --> tail (memory) --> writer --> events.ndjson --> events.1.ndjson
//		          |                                |
//		          '------------> Read <------------'
//
//	  - Add never blocks and never fails. While the disk is not writable, the newest events wait in memory.
//	  - The log has at most two files of 4 MiB. When the first is full, it replaces the second.
//	  - IDs increase, also across restarts. Written events survive kill -9; a truncated line is skipped.
//	  - The text of an event is constant. Variable parts are in its fields, each limited to 1 KiB.
//
// Failed deliveries have a log of their own ([OpenFailures]), because there may be many. [Endings] stores how each
// message left its queue, as a line of about 70 bytes. It writes once a second.
//
// [Read] reads the files while the environment is not running. [Lines] holds the last 4,000 lines or 2 MiB of output
// from tendril and the app's processes, in memory only.
package eventlog
