// Package limit protects the app with a rate limit, an adaptive concurrency limit and a circuit breaker.
//
// The worker calls [Limiter.Acquire] before each delivery and [Limiter.Release] after it. Before receiving it calls
// [Limiter.Room], so that it receives only messages that can start soon. Each of the three limits is off unless
// configured.
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
//	                                breaker: did the app respond?
//
//	the breaker:
//
//	          failure ratio reached                 after the delay,
//	          within the window                     with the next Acquire
//	 closed ----------------------------> open ------------------------> half-open
//	   ^                                   ^                              |     |
//	   |                                   +-- the trial failed: the delay+     |
//	   |                                       doubles                          |
//	   +-- slow start: 1 at once, 1 more per success <-- the trial succeeded ---+
//
// # Counting
//
// The rate counts messages. Concurrency and breaker count deliveries: a batch is one request to the app. A delivery
// fails if the app responds with 500 or more, a function ends with an error, or the response is incomplete. A batch
// fails only if all its messages do. A 4xx status comes from a working app, so poison messages do not open the
// breaker. Messages that never reached the app, were throttled, or were cancelled by the worker are ignored; if that
// happens to the trial, another delivery becomes the trial.
//
// The adaptive limit learns from successes, and from failures that took at least as long as a success, so an app that
// rejects requests at once does not appear fast.
//
// # Invariants
//
//   - A refusal consumes nothing from any limit.
//   - In any period, at most the rate's messages plus one burst start: a tenth of a second's worth, or a whole batch up
//     to a second's worth, at least one. A larger batch exceeds the burst, and the next deliveries wait for the
//     difference.
//   - No delivery starts at the adaptive limit. A falling limit does not affect deliveries in flight.
//   - An open breaker allows nothing until its delay has passed, and then one trial.
//   - A result counts for the breaker only in the state in which its delivery started: deliveries in flight when it
//     opened do not decide the trial.
//   - A refusal until the next release implies that a delivery is in flight.
//
// # Failures
//
// A hanging trial keeps the breaker half-open until the delivery times out. A delivery that is never released stays
// in flight forever. A clock that runs backwards counts as stopped.
//
// # Behaviour of the adaptive limit
//
// It changes by one about once per second, or every 50 deliveries if that takes longer, so it needs about a minute to
// settle. It then oscillates around the app's capacity, which it can only find by trying. A simulation with 100 slots
// that always have work, and an app that processes k requests at once in 100 ms each:
//
//	 k   mean limit   highest limit   throughput of the app's maximum
//	 5       12             20             87 %
//	10       15             24             89 %
//	30       28             38             84 %
//
// It prevents overload, and costs about a tenth of the throughput of the best fixed limit. If you know k, set the
// worker's concurrency to it instead.
//
// # Out of scope
//
// This package starts no goroutines and never sleeps: a refused caller asks again. The worker enforces its own
// concurrency, decides about messages, and probes an app that refuses connections. The breaker's window and the
// adaptive limit use the system clock of their libraries; everything else uses the caller's now.
package limit
