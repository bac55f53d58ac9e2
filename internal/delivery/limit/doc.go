// Package limit protects the app with a rate limit, an adaptive concurrency limit and a circuit breaker.
//
// The worker calls [Limiter.Acquire] before each delivery, [Limiter.Release] after it, and [Limiter.Room] before
// receiving. Each limit is off unless configured.
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
// The rate limit counts messages; the concurrency limit and the breaker count deliveries. A delivery fails if the app
// responds with 500 or more, a function ends with an error, or the response is missing or incomplete, unless another
// result of the batch shows that the app works. After an inconclusive trial, another delivery becomes the trial.
//
// The adaptive limit ignores failures that are faster than the mean success: an app that rejects requests at once must
// not appear fast.
//
// # Invariants
//
//   - A refusal uses up no capacity.
//   - In any period, at most the rate's messages plus one burst start. A larger batch uses future capacity.
//   - No delivery starts while the adaptive limit is reached. A falling limit does not affect deliveries in flight.
//   - An open breaker allows nothing until its delay has passed, and then one trial.
//   - The breaker ignores results of deliveries that started before its latest change of state.
//   - A refusal until the next release implies that a delivery is in flight.
//
// # Behavior of the adaptive limit
//
// The limit changes by one about once per second, or once per 50 deliveries if that takes longer, settles in about a
// minute and then oscillates around the app's capacity. A simulation with up to 100 concurrent deliveries and an app
// that processes k requests at a time in 100 ms each:
//
//	 k   mean limit   highest limit   throughput of the app's maximum
//	 5       12             20             87 %
//	10       15             24             89 %
//	30       28             38             84 %
//
// If you know k, set the worker's concurrency to it instead.
package limit
