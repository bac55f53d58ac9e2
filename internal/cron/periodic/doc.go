// Package periodic determines when tasks are due and enqueues them.
//
//	cron.yaml --> ParseFile --> Task: Schedule + policy
//	                               |
//	    since (Registry) ----------+---------- now (time of day)
//	                               v
//	                        Task.Plan (pure): Enqueue, Passed, Next
//	                               |
//	   Leadership: Term ok? --> Scheduler, one run of a task at a time
//	                               |
//	                               v
//	                   Registry.Enqueue(term, run) --> queue
//
// # Invariants
//
//   - A run is identified by its task and scheduled time. Embedded and FIFO queues get exactly one message per run. A
//     standard queue of Amazon SQS may get two with the same ID after a lost response or the loss of a leader.
//   - Nothing is enqueued early, by the leader's wall clock.
//   - Leadership is checked immediately before each effect, and the registry rejects outdated terms.
//   - The registry stores up to when each task is accounted for, so the next leader catches up on missed runs within
//     the task's policy and grace.
//   - A run is reported as missed once, after the registry has accounted for it without a record of a send.
//   - Runs of a task are enqueued one at a time, in order. Different tasks are independent, up to Concurrency.
//
// # Failures
//
// A failed try is repeated until the task's policy skips the run. A send without a response is repeated once on a
// standard queue, and during the deduplication interval on a FIFO queue; then the run is reported as [ReasonUncertain].
// Two such failures can lose it. FIFO queues need clocks that agree within 30 s.
//
// If the clock is set back, the registry recognizes runs already enqueued. Times skipped by setting it forward count as
// missed.
package periodic
