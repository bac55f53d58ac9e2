// Package worker polls queues, delivers each message and settles it.
//
//	          gate: paused, app not ready, app down, deletes refused, throttled, draining
//	            |
//	Queue --> poll --> accept --> line-up --> slot: Deliver --> settle
//	            ^        |  |       ^ |                           |
//	            |        |  |       | +- waited too long ---+     +- done ----> deletes --+
//	            |        |  |       '--- aside, hidden <----|-----+- postponed            |
//	  room and prefetch  |  +-- behind its FIFO group       |     +- failed --> changes --+--> Queue
//	                     |                                  |     |    (or nothing)       |    in tens
//	                     +-- held already: newer receipt    +-----+- give back -> changes-+
//	                         done already, expired: delete  keeper: extend -----> changes-+
//
// A [Worker] serves one queue; a [Pool] lets several of them share their slots.
// What each file is about:
//
//   - poll.go: when to receive, how much to ask for, what an answer or a failure
//     teaches; room decides, nextPoll opens.
//   - prefetch.go: how much to hold beyond what is in work, and for how long.
//   - capacity.go: slots, which are goroutines that live on, and the way of
//     one delivery through one of them.
//   - settle.go: the decision after a delivery, a pure function; backoff.go its
//     delays.
//   - postpone.go: what the deliverer did not try yet waits aside.
//   - delete.go, extend.go, giveback.go: the three things said to the queue, each
//     an order in a box (box.go) that travels with up to nine others.
//   - fifo.go: one at a time, in order, within a group.
//   - batch.go: several messages in one delivery.
//   - gate.go: what keeps the worker from receiving, the prober, and its watch over
//     an idle app; throttle.go the pause that a target asks for; limiter.go what
//     protects the app.
//   - pool.go: who gets a free slot, and what each queue may receive; order.go
//     the draw, pure; share.go what a pool knows of one queue; rest.go its sleep.
//   - clock.go: noticing that the process stood still.
//   - run.go, drain.go: the keeper's rounds, and the way to stop.
//   - status.go, events.go, recent.go: what others see.
//
// # Invariants
//
//   - One receive is posted at most once. No message id is posted twice at the
//     same time by one worker: a second receive of a message that is held here
//     only replaces its receipt. Deliver is called once for a receive, and once
//     more for each time that it answered [queue.Postponed]: that nothing
//     was posted then is the deliverer's word.
//   - A message is deleted only after its success was read, or when it is past its
//     retention. What was done but whose delete was never confirmed is
//     remembered (the last 10,000) and deleted unposted when it comes again.
//   - At most Concurrency deliveries run, over all workers of a pool at most the
//     pool's; a delivery holds its slot until the answer, not until the delete.
//   - A delivery begins with more than half of its visibility left. What waited
//     longer (three eighths of the visibility, or 10 s) is given back.
//   - What was never posted is given back unread by visibility 0; what may be
//     running is never made visible early.
//   - What was postponed takes no slot and no room, and costs no receive: it is
//     hidden until it is tried. It is given back when the worker drains or its
//     gate closes, when no extension gives it half of a visibility any
//     more (12 h after its receive), and, for a minute and the youngest first,
//     when there are more than 1000, or eight times PrefetchBytes.
//   - Message k+1 of a FIFO group is posted after the delete of k is confirmed,
//     or k failed at the last receive that the queue grants it, or in the same
//     batch behind k. When k is not done and may come again, those behind it are
//     given back; those behind it in its batch are not deleted even if they
//     were reported done, and come again behind it, since else k would take
//     effect after them. In a batch nothing is behind what was tried before or
//     is at its last receive.
//   - Nothing begins that the [Limiter] did not allow, and it is told of the end
//     of each message that it allowed, once.
//
// # Several queues
//
//	pool: C slots        draw for each free slot
//	 [#][#][#][ ][~]  <--- payments   3   in hand 2, a receive under way
//	           |    \     submissions 2   found empty: one receive waits
//	           |     \    default     1   in hand 5
//	          free    reserved: the answer of a receive decides
//
// For each free slot a new order of the queues is drawn: as they joined when no
// [Options] have a Weight, else by chance in proportion to the weights; the
// draws are spread evenly, so that the shares hold within a few turns and
// not only on average. The slot goes to the first queue in it that has work. A
// message in hand starts at once; one that has to be received first keeps the
// slot reserved until the answer, so that the shares hold although receives
// travel in tens and may be slow. A queue can have about its share of the slots
// reserved; the turn after that waits, and all others behind it, so that nobody
// runs ahead of a slow receive.
//
// A receive that stays open tells that its queue is empty: what was reserved for
// it is free again, and it stays open to bring the next message at once. How
// long that takes depends on what the queue brought last. One that was full,
// answered well and without waiting, is believed to be full for five times the
// slowest round trip of late, 250 ms to 10 s; one that was never heard of for a
// second, or three times what the others take; after anything less for a few
// usual round trips. So each time that a
// full queue runs dry costs the slots of the pool up to that long, but, where it
// happens often, no more than a twentieth of the time in between.
//
// A queue that answers fully gets twice as many receives at once after each round
// trip, up to 64; fewer when answers get slow, three and six times the shortest
// of late and more: then the server has enough to do.
//
// In strict order nothing is received below a queue that has work: messages in
// hand, a last receive that brought more than half of what it asked for, or
// one that was not answered yet. After a smaller one the queue is a thin
// stream: it keeps one slot until it is found empty, and those below have the
// rest. A worker that does not run yet, whose gate is closed, or that failed to
// receive, takes no share and holds nobody up; so start the workers, and open
// their gates, in the order of the queues.
//
// Each queue has at most one receive open while it is empty, and none while all
// slots are busy for long. What such a receive of a lower queue brings waits for
// its turn, for at most the time that any message may wait here.
//
// Members may have the same [Limiter], or all have the pool's. Its room is then
// divided like the slots: what one member has in hand, expects of receives under
// way or has reserved is no room for the others to receive in. What waits in hand
// keeps nobody from a turn; only what is reserved does. Messages that come to many
// empty queues at once can be more than there is room for, by one for each queue.
//
// # The three clocks of a message
//
// The queue hides a message for VisibilityTimeout from its receive. As long as
// Deliver has not returned, which enforces the app's own time limits, the
// message is hidden again for as long from half of that time on, in all for at
// most 12 hours from its receive. After a failure the message is left to its visibility,
// which an extended one gets back as its receive had it, or hidden for the delay that
// [Options] ask for. A receipt has one change of visibility under way at a time, so
// that a late extension cannot overwrite what follows it.
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
//   - The app refuses connections: that is no attempt. Receiving stops, that
//     message and what is prefetched are given back, the app is probed (250 ms to
//     5 s apart), and then work begins again with one delivery at a time, one more
//     with each answer. Where a receive counts although its message was given back,
//     a message that an app refuses right after it passed a probe keeps its
//     visibility instead.
//   - The app ends while there is nothing to do: with ProbeIdle it is probed, and
//     the gate closes after two probes in a row that fail.
//   - The target throttles: that is no attempt. Receiving and delivering stop for
//     as long as it asks, else for 2 to 30 s; what is in hand is given back if
//     it cannot wait for so long; then work begins again as after an outage.
//   - The deliverer postpones: the slot is free at once and others go on. The
//     message is asked for again after the time that the answer names (10 ms to a
//     minute, 100 ms when it names none), alone also where messages travel in
//     batches. Its FIFO group waits behind it.
//   - The limiter refuses: receiving stops first, of all workers in the pool that
//     have it; what is in hand waits as long as it may, and is then given back.
//     A breaker also ends the receives that wait.
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
// (package deliver does) nor where its queue lives. Workers of one app do not
// tell each other that it is down: each finds out, and probes, itself.
package worker
