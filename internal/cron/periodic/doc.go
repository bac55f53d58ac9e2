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
// Package registry implements Registry: one transaction in the embedded queue, or a try that is announced, sent and
// settled for queues that cannot recognise runs (Amazon SQS).
//
// # Invariants
//
//   - A run is named by its task and its scheduled time, so that every instance
//     and every try mean the same one. There is one message of it on the
//     embedded queue and on FIFO queues, and at most two on a standard queue of
//     Amazon SQS, with the same id, and only if a try to send had no known
//     outcome or a leader died or stood still between announcing and settling it.
//   - Nothing is enqueued before its time, by the time of day of the instance
//     that leads. Jitter delays, by the same amount on all instances, and never
//     changes the order: a run waits for those before it.
//   - Nothing is begun without the lead, which is asked for right before each
//     effect. The term travels along, so that a registry can refuse a leader
//     that stood still in between.
//   - Since a registry remembers up to when each task is accounted for, the next
//     leader makes up for missed runs, as far as the task's policy and grace
//     allow. Runs left out are reported as [Skipped]. A task counts from when the
//     first leader that reached the registry first knew it: runs due before that
//     leader's process started, while no leader had ever been there, is not
//     made up for.
//   - A run is reported as missed once: when the registry has accounted for it and has
//     no record that it was sent or announced.
//   - A task's runs are enqueued one after the other, in the order of their
//     times; tasks do not wait for each other, up to Concurrency.
//
// # When something fails
//
// A try that fails is repeated with growing pauses up to 30 s, until the run is
// older than its grace. On a standard queue a send without an answer is repeated
// once at most, on a FIFO queue for as long as the queue recognises the
// repetition; then the run is left as it is and told as [ReasonUncertain]. Two
// failures of that kind in one run, or two leaders that die while they send the same
// run, can therefore lose it: only one such failure is covered. A FIFO queue
// needs clocks that agree within 30 s for that.
//
// A clock that is set back makes times come again: the registry tells those that
// were enqueued. The next leader that finds a time to come there looks back as far as the grace,
// and makes up for the others. Times that a clock set forward jumped over count as missed.
// Both, and a machine that stood still, are noticed within a second of running.
//
// A file that is refused changes nothing: the caller keeps the tasks it has.
//
// # What it does not do
//
// It holds no election, talks to no queue and reads no file by itself. Time zones
// come from the system or from time/tzdata, which the command imports. A run
// that is enqueued is an ordinary message: when it is delivered depends on the
// queue before it.
package periodic
