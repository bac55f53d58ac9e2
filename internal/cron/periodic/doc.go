// Package periodic works out when tasks are due and enqueues them.
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
// Package registry implements Registry: in one transaction with the embedded queue, or by announcing, sending and
// settling a try for queues that do not recognize runs (Amazon SQS).
//
// # Invariants
//
//   - A run is identified by its task and scheduled time, on all instances and at every try. Embedded and FIFO queues get
//     exactly one message per run. A standard queue of Amazon SQS may get two messages with the same ID, but only if
//     a send had an unknown outcome or a leader died or was suspended between announcing and settling it.
//   - Nothing is enqueued before its time, by the leader's wall clock. Jitter delays a run by the same amount on all
//     instances and never changes the order of runs.
//   - Leadership is checked immediately before each effect, and the term is passed along so that the registry can reject
//     an outdated leader.
//   - The registry stores up to when each task is accounted for, so the next leader catches up on missed runs as far as
//     the task's policy and grace permit. Skipped runs are reported as [Skipped]. A task's history starts when a leader
//     first recorded it: runs due before that leader's process started are not caught up.
//   - A run is reported as missed once, when the registry has accounted for it and contains no record of a send.
//   - Runs of a task are enqueued one at a time, in order. Different tasks are independent, up to Concurrency.
//
// # Failures
//
// A failed try is repeated with delays of up to 30 s until the run is older than its grace. A send without a response
// is repeated once on a standard queue, and during the deduplication interval on a FIFO queue. Then the run is
// reported as
// [ReasonUncertain]. Two failures of this kind, or two leaders dying during the same run, can lose it. FIFO queues need
// clocks that agree within 30 s.
//
// If the clock is set back, the same times occur again, and the registry recognizes runs already enqueued. The next
// leader whose task's last time is in the future checks the grace period again and catches up on the rest. Times
// skipped by setting the clock forward count as missed. Clock changes and suspensions are detected within a second.
//
// An invalid file changes nothing: the caller keeps its tasks.
//
// # Limits
//
// Election, queues and reading files belong to other packages. Time zones come from the system or from time/tzdata,
// which the command imports. An enqueued run is an ordinary message, delivered when its queue permits.
package periodic
