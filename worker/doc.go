// Package worker polls queues, delivers each message and settles it.
//
//	          gate: paused, app not ready, app down, deletes refused, draining
//	            |
//	Queue --> poll --> accept --> line-up --> slot: Deliver --> settle
//	            ^        |  |        |                            |
//	            |        |  |        +-- waited too long ---+     +- done ----> deletes --+
//	  room and prefetch  |  +-- behind its FIFO group       |     +- failed --> changes --+--> Queue
//	                     |                                  |     |    (or nothing)       |    in tens
//	                     +-- held already: newer receipt    +-----+- give back -> changes-+
//	                         done already, expired: delete  keeper: extend -----> changes-+
//
// A [Worker] serves one queue. What each file is about:
//
//   - poll.go: when to receive, how much to ask for, what an answer or a failure
//     teaches; room decides, nextPoll opens.
//   - prefetch.go: how much to hold beyond what is in work, and for how long.
//   - capacity.go: slots, which are goroutines that live on, and the way of
//     one delivery through one of them.
//   - settle.go: the decision after a delivery, a pure function; backoff.go its
//     delays.
//   - delete.go, extend.go, giveback.go: the three things said to the queue, each
//     an order in a box (box.go) that travels with up to nine others.
//   - fifo.go: one at a time, in order, within a group.
//   - gate.go: what keeps the worker from receiving, and the prober.
//   - clock.go: noticing that the process stood still.
//   - run.go, drain.go: the keeper's rounds, and the way to stop.
//   - status.go, events.go: what others see.
//
// # Invariants
//
//   - One receive is posted at most once. No message id is posted twice at the
//     same time by one worker: a second receive of a message that is held here
//     only replaces its receipt.
//   - A message is deleted only after its success was read, or when it is past its
//     retention. What was done but whose delete was never confirmed is
//     remembered (the last 10,000) and deleted unposted when it comes again.
//   - At most Concurrency deliveries run; a delivery holds its slot until the
//     answer, not until the delete.
//   - A delivery begins with more than half of its visibility left. What waited
//     longer (three eighths of the visibility, or 10 s) is given back.
//   - What was never posted is given back by visibility 0; what may be running is
//     never made visible early.
//   - Message k+1 of a FIFO group is posted after the delete of k is confirmed.
//     When k is not done, those behind it are given back.
//
// # The three clocks of a message
//
// The queue hides a message for VisibilityTimeout from its receive. As long as
// Deliver has not returned, which enforces the app's own time limits, the
// message is hidden again for as long from half of that time on, in all for at
// most 12 hours from its receive. After a failure the message is left to its visibility or hidden
// for the delay that [Options] ask for; an extension under way is awaited
// before, so that it cannot overwrite that delay.
//
// When the process stands still for longer than the visibility (a stop signal,
// a suspended machine: the monotonic and the wall clock are both watched), the
// receipts count as lapsed. What was not posted is dropped. What is in work
// goes on, and is never extended or delayed any more, since another worker may
// have the message. Its success is still sent as a delete, and the queue is the
// judge: a FIFO queue refuses an expired receipt, and the message is
// attempted again; a standard queue deletes the message unless somebody
// received it meanwhile. When this worker itself receives the message again
// during the work, the new receipt takes over and nothing is lost.
//
// # When something fails
//
//   - The app refuses connections: that message counts as failed, receiving stops,
//     what is prefetched is given back, the app is probed (250 ms to 5 s apart),
//     and then work begins again with one delivery at a time, one more with
//     each answer.
//   - A receive fails: the next one waits, longer each time, up to 15 s; up to
//     30 s when the queue refused for good (access denied, no such queue).
//   - A delete fails: it is repeated until shortly before the visibility ends.
//     The message is never posted again instead.
//   - Deletes are refused for good: receiving stops until one is accepted; the
//     refused ones are tried again every 5 to 30 s.
//   - A change of visibility fails: it is repeated only as long as it cannot hit
//     what another worker may have received since.
//
// # What it does not do
//
// It does not count retries or move messages to a dead-letter queue: that is the
// queue's redrive policy. It never repeats a POST. It does not know HTTP
// (package deliver does) nor where its queue lives. It serves one queue; an order of several
// would choose whose nextPoll to call.
package worker
