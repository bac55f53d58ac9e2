// Package registry keeps the records that instances agree on: leases, tasks, scheduled runs and pauses.
//
//	leader.Elector   periodic.Scheduler        the HTTP client of sqsapi has the
//	       |                 |                 methods of Leases and Runs; its server
//	       v                 v                 calls them on the broker's store
//	     Leases     Runs: since, enqueue, skip, pause
//	       |                 |
//	       v                 v
//	     Store: Read, Swap (compare-and-swap, fenced by a lease's term)
//	     QueueStore: also Enqueue, records and message in one transaction
//	       |
//	       '- broker.Registry (QueueStore), aws.Table, Memory
//
// The rules live in [Leases] and [Runs], once. A store only compares and replaces records. Another kind of record needs
// a [Kind] and, in the broker, a table; DynamoDB stores any fields.
//
// # Scheduled runs
//
// A run is named by its task and its scheduled time, so that every instance and every try mean the same one. A
// QueueStore has one message of it: the run's record and its message are one transaction. For other queues a try is
// announced in the record, sent, and the record settled:
//
//	announce (try 1) --> send --> settle
//	     |                 |        '- failed: settle again; the message is not sent again
//	     |                 |- refused: send again, later, within the same try
//	     |                 '- no answer: announce try 2 and send again
//	     '- announced before, never settled: announce try 2 and send again
//
// On a standard queue a leader makes two tries at most, then it is [ErrUncertain], and each later leader that finds the
// run unsettled one more: a missing run is worse than two messages of one. On a FIFO queue there may be any number of
// tries within the 5 minutes in which the queue recognises their deduplication id, and after that none.
//
// # Names on the wire and in stores
//
// Stored keys, attributes and wire actions call a scheduled run a "fire", because instances of earlier versions may
// share the store.
package registry
