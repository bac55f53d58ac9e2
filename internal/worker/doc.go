// Package worker polls queues, delivers each message and settles it.
//
// A [Worker] serves one queue. Its loops wait for one thing each, without the lock: a receive (receive.go), a delivery
// (deliver.go), a call of the queue (calls.go), the time of the next round (run.go). They give the result to the parts,
// which hold state and decide, and end with proceed:
//
//		Queue --> receive --> accept --> deliver --> settle --> call --> Queue
//		             ^           |          ^           |
//		          poller     inventory    slots    settler: deletes, dead letters, changes of visibility
//		             ^                      ^
//		             +-------- gate --------+      paused, app not ready, app down, deletes refused, throttled, draining
//
//	  - The poller decides when to receive and how much: one long poll while the queue is
//	    empty, up to 64 receives at once while it is full, and never more messages than can
//	    start soon (pace.go).
//	  - The inventory holds the messages: ready, behind another one of their FIFO group, postponed.
//	  - The slots decide what a free slot gets. A message gets one in the order of its arrival, one at a time within its
//	    FIFO group, when the [Limiter] gives a permit. Several messages may travel in one delivery ([Batch]).
//	  - The settler decides what becomes of a message after its delivery (decision.go is
//	    that decision, a pure function): it is deleted (deleter.go), made visible later, or
//	    postponed and asked for again. Deletes and changes travel in tens (batcher.go).
//	  - visibility.go changes the visibility of messages: it also extends the visibility of messages
//	    in work and of those that wait for their turn.
//	  - The gate says why nothing is received, and app.go watches over the app.
//
// One lock guards all parts: a delivery that ends frees a slot, deletes a message and opens a receive in one step. A
// [Pool] lets several workers share their slots, and their lock: lane.go has each queue's part in it, turns.go the order.
//
// # Invariants
//
//   - One receive is posted at most once. No message id is posted twice at the
//     same time by one worker: a second receive of a message that is held here
//     only replaces its receipt. Deliver is called once for a receive, and once
//     more for each time that it answered [queue.Postponed]: that nothing
//     was posted then is the deliverer's word.
//   - A message is deleted only after its success was read, when it is past its
//     retention, or when a dead-letter queue has accepted it. What was done, or accepted
//     there, but whose delete was never confirmed is remembered (the last 10,000) and
//     deleted unposted when it comes again.
//   - At most Concurrency deliveries run, over all workers of a pool at most the
//     pool's; a delivery holds its slot until the answer, not until the delete.
//   - A delivery begins with more than half of its visibility left. What waited
//     longer (three eighths of the visibility, or 10 s) is returned to the queue.
//   - What was never posted is returned by visibility 0; what may be running is never
//     made visible early.
//   - What was postponed takes no slot, and costs no receive: it is hidden until it is
//     tried. It is returned when the worker drains or its gate closes, when no extension
//     gives it half of a visibility any more (12 h after its receive), and, for a minute
//     and the youngest first, when there are more than 1000, or eight times PrefetchBytes.
//   - Message k+1 of a FIFO group is posted after the delete of k is confirmed,
//     or k failed at the last receive that the queue grants it, or in the same
//     batch behind k. When k is not done and may come again, those behind it are
//     returned; those behind it in its batch are not deleted even if they were reported
//     done, since else k would take effect after them.
//   - Nothing begins without a permit of the [Limiter], which is released once, with
//     the results of its delivery.
//
// # Several queues
//
// Each free slot goes to a queue with work: the first in the order in which they joined
// when no [Options] have a Weight, else they take turns in proportion to the weights. A
// message in hand starts at once. One that has to be received first keeps the slot reserved
// until the answer, so that the shares hold although receives travel in tens and may be
// slow; a queue can have about its share of the slots reserved.
//
// A receive that stays open tells that its queue is empty: what was reserved for it is free
// again; see emptyTimeout in lane.go. In strict order nothing is received below a queue that
// has work. A worker that does not run yet, whose gate is closed, or that failed to receive,
// takes no share; so start the workers, and open their gates, in the order of the queues.
//
// # The clocks of a message
//
// The queue hides a message for VisibilityTimeout from its receive. From half of that
// time on it is hidden again for as long, until Deliver returns, in all for at most 12
// hours from its receive. After a failure it is visible when the timeout of its receive
// ends, or after the delay that [Options] ask for. A receipt has one change of visibility
// under way at a time, so that a late extension cannot overwrite what follows it.
//
// When the process stands still for longer than the visibility (a stop signal, a
// suspended machine; see core.go), the receipts count as lapsed. What was not posted
// is dropped. What is in work goes on, and its success is still sent as a delete: the
// queue is the judge.
//
// # When something fails
//
//   - The app refuses connections: that is not an attempt. Receiving stops, what is not in
//     work is returned, the app is probed (250 ms to 5 s apart), and then work begins
//     again with one delivery at a time, one more with each answer. Where a receive
//     counts although its message was returned, a message that an app refuses right
//     after it passed a probe keeps its visibility instead.
//   - The target throttles: that is not an attempt. Receiving and delivering stop for as long
//     as it asks, else for 2 to 30 s.
//   - The limiter refuses: receiving stops first, of all workers in the pool that have
//     it; what is in hand waits as long as it may, and is then returned.
//   - A receive fails: the next one waits, up to 15 s; up to 30 s when the queue refused
//     for good (access denied, no such queue).
//   - The dead-letter queue does not accept a message: it comes again, or the redrive policy moves it.
//   - A delete fails: it is repeated until shortly before the visibility ends. Refused
//     for good, receiving stops until one is accepted.
//   - A change of visibility fails: it is repeated only as long as it cannot hit what
//     another worker may have received since.
//
// # What it does not do
//
// It does not count retries: that is the queue's redrive policy, which also dead-letters messages.
// Only a queue that is a [DeadLetterer] is given those that an instruction sends there, and those that
// failed at their last receive, a moment before the policy would act (deadletters.go). It never repeats
// a POST. It does not know HTTP (package deliver does) nor where its queue lives.
package worker
