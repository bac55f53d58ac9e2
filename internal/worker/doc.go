// Package worker polls queues, delivers each message and settles it.
//
// The goroutines of a [Worker] wait without the lock for a receive (receive.go), a delivery (deliver.go), a queue call
// (calls.go) or the next round (run.go). They pass the result to the parts below and then call proceed.
//
//		Queue --> receive --> accept --> deliver --> settle --> call --> Queue
//		             ^           |          ^           |
//		          poller     inventory    slots    settler: deletes, dead letters, changes of visibility
//		             ^                      ^
//		             +-------- gate --------+      paused, app not ready, app down, deletes refused, throttled, draining
//
//	  - The poller decides when and how much to receive: one long poll from an empty queue, up to 64 receives from a full
//	    one, and never more messages than can start soon (pace.go).
//	  - The inventory holds messages that are ready, waiting behind their FIFO group, or postponed.
//	  - The slots choose messages for delivery, one at a time per FIFO group, with a permit of the [Limiter].
//	  - The settler carries out decisions about delivered messages (decision.go) in batches of up to ten (batcher.go).
//	  - The gate holds the reasons for not receiving; app.go monitors the app.
//
// One lock guards all parts. Workers of a [Pool] share it, and their slots (lane.go, turns.go).
//
// # Invariants
//
//   - Each receive is posted at most once, and a message never twice at the same time. Deliver is called again only
//     after [queue.Postponed], which guarantees that nothing was posted.
//   - A message is deleted only once it is done, filtered out, past its retention or accepted by the dead-letter queue.
//     If received again before the delete is confirmed, it is deleted unposted.
//   - A delivery holds its slot until the response, not until the delete.
//   - A delivery starts with more than half of its visibility timeout left; other messages are returned.
//   - Unposted messages are returned with a visibility timeout of 0, surplus postponed ones with up to a minute. A
//     message that may still be running is never made visible early.
//   - Postponed messages occupy no slot and use up no receive. They are returned when the gate closes for a reason
//     other than throttling, shortly before 12 h after the receive, and when there are too many.
//   - Message k+1 of a FIFO group is posted after the delete of k is confirmed, after k failed on its last receive, or
//     after k in the same batch. If k failed and may be received again, the messages behind it are returned; those in
//     its batch are not deleted even if done, because k would be processed after them.
//
// # Several queues
//
// Each free slot goes to a queue with work: in strict order of joining if no [Options] have a Weight, otherwise in
// turns proportional to the weights. It stays reserved while the message is received, so that the shares hold even if
// receives are slow. After too long a wait, the queue counts as empty. In strict order, a queue receives nothing while
// a higher one has work.
//
// # Failures
//
//   - The process stops for longer than the visibility timeout: unposted messages are dropped; deliveries continue, and
//     done messages are still deleted.
//   - The app refuses connections (no attempt): receiving stops, unposted messages are returned, and the app is probed.
//     Then deliveries resume one at a time, with one more after each response.
//   - The target throttles (no attempt): receiving and delivering stop for the requested time, at most 5 minutes, or
//     for 1 to 30 s.
//   - The limiter refuses: all workers that share it stop receiving. Held messages wait.
//   - A receive fails: the next one waits up to 15 s, or up to 30 s after a permanent refusal.
//   - A delete fails: it is retried until shortly before the visibility timeout ends. After a permanent refusal,
//     receiving stops until a delete is accepted.
//   - A visibility change fails: it is retried only while it cannot affect another worker's receive.
//
// The redrive policy limits the attempts. The worker never repeats a POST request.
package worker
