// Package worker polls queues, delivers each message and settles it.
//
// A [Worker] serves one queue. Its goroutines block on one thing each, without holding the lock: a receive
// (receive.go), a delivery (deliver.go), a queue call (calls.go) or the next round (run.go). They pass the result to
// the parts below, which hold the state, and then call proceed.
//
//		Queue --> receive --> accept --> deliver --> settle --> call --> Queue
//		             ^           |          ^           |
//		          poller     inventory    slots    settler: deletes, dead letters, changes of visibility
//		             ^                      ^
//		             +-------- gate --------+      paused, app not ready, app down, deletes refused, throttled, draining
//
//	  - The poller decides when to receive and how many messages: one long poll while the queue is empty, up to 64
//	    receives while it is full, and never more messages than can start soon (pace.go).
//	  - The inventory holds the messages: ready, waiting behind their FIFO group, or postponed.
//	  - The slots choose the messages for a free slot in order of arrival, one at a time per FIFO group, if the [Limiter]
//	    grants a permit. One delivery may carry several messages ([Batch]).
//	  - The settler handles each message after its delivery (the pure function in decision.go decides): delete it
//	    (deleter.go), delay its next attempt, or postpone it. Deletes and visibility changes are sent in tens (batcher.go).
//	  - visibility.go also extends the visibility of messages in flight and of messages waiting for their turn.
//	  - The gate records the reasons for not receiving, and app.go monitors the app.
//
// One lock guards all parts, so the end of a delivery can free a slot, delete a message and start a receive in one
// step. Workers of a [Pool] share their slots and their lock: lane.go holds each queue's part, turns.go the order.
//
// # Invariants
//
//   - Each receive is posted at most once, and a worker never posts one message twice at the same time: receiving a held
//     message again only replaces its receipt. Deliver is called once per receive, and again after each
//     [queue.Postponed], with which the deliverer guarantees that it posted nothing.
//   - A message is deleted only after its success was read, after its retention, or after the dead-letter queue accepted
//     it. The last 10,000 processed messages without a confirmed delete are remembered, and deleted unposted if received
//     again.
//   - At most Concurrency deliveries run, and at most the pool's over all its workers. A delivery holds its slot until
//     the response, not until the delete.
//   - A delivery starts with more than half of its visibility left. Messages that waited longer (three eighths of the
//     visibility timeout, or 10 s) are returned to the queue.
//   - Messages that were never posted are returned with visibility 0. A message that may be running is never made
//     visible early.
//   - Postponed messages take no slot and cost no receive; they stay hidden until retried. They are returned when the
//     worker drains, when its gate closes, when no extension can give them half a visibility timeout any more (12 h after
//     the receive), and, newest first and for a minute, when there are more than 1000 or eight times PrefetchBytes.
//   - Message k+1 of a FIFO group is posted after the delete of k is confirmed, after k failed at its last receive, or
//     behind k in the same batch. If k failed and may be received again, the messages behind it are returned; those in
//     its batch are not deleted even if reported as done, because k would then take effect after them.
//   - A delivery starts only with a permit of the [Limiter], which is released once, with the results.
//
// # Several queues
//
// Each free slot goes to a queue with work: in strict order of joining if no [Options] have a Weight, otherwise in
// turns proportional to the weights. A held message starts at once. A message that must be received first reserves
// its slot until the answer, so that shares hold although receives come in tens and may be slow. A queue can reserve
// about its share of the slots.
//
// A receive that stays open means that its queue is empty, which frees the reserved slots: see emptyTimeout in
// lane.go. In strict order, nothing is received below a queue with work. A worker that is not running yet, has a
// closed gate, or failed to receive takes no share, so start the workers and open their gates in the order of the
// queues.
//
// # Timing of a message
//
// A receive hides a message for VisibilityTimeout. From half of that time on, the visibility is extended until
// Deliver returns, for at most 12 hours from the receive. A failed message becomes visible when the timeout of its
// receive ends, or after the delay set in [Options]. A receipt has only one visibility change in flight at a time, so
// a late extension cannot overwrite a later change.
//
// If the process stops for longer than the visibility timeout (a stop signal, a suspended machine; see core.go), its
// receipts count as expired. Messages not posted yet are dropped. Deliveries continue, and their successes are still
// sent as deletes: the queue decides.
//
// # Failures
//
//   - The app refuses connections: not an attempt. Receiving stops, messages not in flight are returned, and the app is
//     probed every 250 ms to 5 s. Then deliveries resume with one at a time, and one more after each response. If a
//     receive counts although its message was returned, a message refused right after a successful probe keeps its
//     visibility instead.
//   - The target throttles: not an attempt. Receiving and delivering stop for the requested time, or for 2 to 30 s.
//   - The limiter refuses: all workers that share it stop receiving. Held messages wait as long as they may and are then
//     returned.
//   - A receive fails: the next one waits up to 15 s, or up to 30 s after a permanent refusal (access denied, no such
//     queue).
//   - The dead-letter queue does not accept a message: it is received again, or the redrive policy moves it.
//   - A delete fails: it is retried until shortly before the visibility ends. After a permanent refusal, receiving stops
//     until a delete is accepted.
//   - A visibility change fails: it is retried only while it cannot affect a later receive by another worker.
//
// # Out of scope
//
// The worker does not count retries: the queue's redrive policy does, and dead-letters messages. Only a
// [DeadLetterer] queue is given the messages that an instruction dead-letters, and those that failed at their last
// receive, just before the policy would act (deadletters.go). The worker never repeats a POST. It knows neither HTTP
// (see package deliver) nor where its queue is hosted.
package worker
