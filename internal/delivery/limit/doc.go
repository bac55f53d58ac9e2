// Package limit protects the app with a rate limit, an adaptive concurrency limit and a circuit breaker.
//
// A [Limiter] stands between a worker and its app. The worker calls
// [Limiter.Acquire] right before each delivery and releases what it got after it. Before it
// receives, it calls [Limiter.Room], so that it takes no message from the queue that
// could not start soon. Each of the three limits is off unless configured.
//
//	             Acquire(n)
//	                |
//	   breaker  open? ------------> refused "breaker", ask again after the delay
//	                |
//	  slow start, adaptive full? -> refused "concurrency", ask again after a release
//	                |
//	    rate    n available? -----> refused "rate", ask again when they are
//	                |
//	          one delivery of n messages starts
//	                |
//	             release ---------> adaptive: how long did it take?
//	                                breaker: did the app answer?
//
//	the breaker:
//
//	          failure ratio reached                 after the delay,
//	          within the window                     with the next Acquire
//	 closed ----------------------------> open ------------------------> half-open
//	   ^                                   ^                              |     |
//	   |                                   +-- the trial failed: the delay+     |
//	   |                                       doubles                          |
//	   +--- slow start: 1 at once, 1 more per answer <--- the trial succeeded --+
//
// # What is counted
//
// The rate counts messages. Concurrency and breaker count deliveries: a batch is
// one request to the app and one sample. A delivery fails when the app answers 500
// or more, when a function ends with an error, and when there is no complete answer.
// A batch fails only if none of its messages got a better answer. A 4xx status is the
// answer of an app that works, so poison messages do not open the breaker. Messages
// that never reached the app, that it throttled, or that the worker canceled are
// ignored; if the trial is ignored, another delivery becomes the trial.
//
// The adaptive limit learns from successes, and from failures that took at least as
// long as a success. An app that rejects requests at once does not look fast.
//
// # Invariants
//
//   - A refusal consumes nothing, from none of the limits.
//   - In any period, no more messages start than the rate allows in it plus one
//     burst: a tenth of a second's worth, or a whole batch within a second's worth, at
//     least one. Only a batch larger than that exceeds it, by the difference, and the
//     next deliveries wait for it.
//   - No delivery starts when the adaptive limit is reached. A limit that falls does
//     not affect deliveries in work.
//   - An open breaker allows nothing until its delay is over, and then one trial,
//     however long ago that was.
//   - A result counts for the breaker only in the state in which its delivery started:
//     deliveries that were in work when it opened do not decide the trial.
//   - When a refusal says to wait for the next release, a delivery is in work.
//
// # When something fails
//
// A trial that hangs keeps the breaker half-open until the delivery times out. A
// delivery that is never released stays in work for ever. A clock that runs backwards
// counts as standing still.
//
// # How the adaptive limit behaves
//
// It moves by one about once a second, or every 50 deliveries where that takes
// longer, so it needs about a minute to settle. It keeps oscillating around the app's
// capacity, because it can only find it by trying. In a simulation with 100 slots that
// always have work, and an app that works on k requests at once for 100 ms each:
//
//	 k   mean limit   highest limit   throughput of the app's maximum
//	 5       12             20             87 %
//	10       15             24             89 %
//	30       28             38             84 %
//
// It keeps an app from being overloaded and costs about a tenth of the throughput of
// the best fixed limit. If you know k, set the worker's concurrency to it instead.
//
// # What it does not do
//
// It starts no goroutine and never sleeps: a refused caller asks again. It does not
// enforce the worker's own concurrency, does not decide about messages, and does not
// probe an app that refuses connections: the worker does. The breaker's window and the
// adaptive limit use the libraries' clock, which is the system's; everything else uses
// the caller's now.
package limit
