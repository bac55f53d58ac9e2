// Package registry keeps the records that instances share: leases, tasks, scheduled runs and pauses.
//
//	leader.Elector   periodic.Scheduler        the client in sqsapi has the same
//	       |                 |                 methods as Leases and Runs; its server
//	       v                 v                 calls them on the broker's store
//	     Leases     Runs: since, enqueue, skip, pause
//	       |                 |
//	       v                 v
//	     Store: Read, Swap (compare-and-swap, fenced by a lease's term)
//	     QueueStore: also Enqueue, records and message in one transaction
//	       |
//	       '- broker.Registry (QueueStore), aws.Table, Memory
//
// # Scheduled runs
//
// A run is identified by its task and scheduled time. A QueueStore writes the run's record and message in one
// transaction. For other queues, each try is announced in the record, sent, and settled:
//
//	announce (try 1) --> send --> settle
//	     |                 |        '- failed: settle again without sending
//	     |                 |- rejected: send again later, within the same try
//	     |                 '- no response: announce try 2 and send again
//	     '- announced before, never settled: announce try 2 and send again
//
// On a standard queue, a leader makes at most two tries and then returns [ErrUncertain]. A later leader makes one more,
// because a missing run is worse than a duplicate message. On a FIFO queue, tries are unlimited, but stop 30 s before
// the end of the deduplication interval of 5 minutes.
//
// Stored keys, attributes and wire actions call a scheduled run a "fire", as in earlier versions.
package registry
