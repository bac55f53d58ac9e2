// Package limit protects the app: a rate, an adaptive concurrency, and a breaker.
//
// A [Limiter] stands between a worker and its app. The worker asks [Limiter.Allow]
// right before each delivery, tells [Limiter.Done] how it ended, and asks
// [Limiter.Room] before it receives, so that no message is taken from the queue
// that could not start soon. Each of the three limits is off unless configured.
//
//	             Allow(n)
//	                |
//	   breaker  open? ------------> refused "breaker", ask again after the delay
//	                |
//	  slow start, adaptive full? -> refused "concurrency", ask again after a Done
//	                |
//	    rate    n saved up? ------> refused "rate", ask again when it is
//	                |
//	          one delivery begins, of n messages
//	                |
//	             Done, n times ---> adaptive: how long did it take?
//	                                breaker: is the app well?
//
//	the breaker:
//
//	          share of failures reached              after its delay,
//	          over the window                        with the next Allow
//	 closed ----------------------------> open ------------------------> half-open
//	   ^                                   ^                              |     |
//	   |                                   +---- a trial failed: twice ---+     |
//	   |                                         the delay                      |
//	   +--- slow start: 1 at once, 1 more per answer <--- all trials answered --+
//
// What each file is about: limiter.go asks the limits in turn; rate.go,
// adaptive.go and breaker.go are one limit each, on top of a library that does the
// arithmetic; verdict.go says what a result means for the app's health, flights.go
// which delivery a result belongs to, pace.go how fast the app is; events.go and
// status.go are what others see.
//
// # What is counted
//
// The rate counts messages. Concurrency and breaker count deliveries: a batch is
// one request to the app, and one sample, ill only if none of its messages was
// answered well. Ill is an answer of 500 and more, an error of a function, and no
// whole answer. A 4xx is the answer of an app that works: poison messages do not open
// the breaker, nor do those that cannot be sent at all. What never reached the app,
// what it throttled and what the worker itself cut off say nothing; such a trial is
// repeated.
//
// The adaptive limit learns from what is done, and from what failed only if that
// took as long as a success: an app that turns requests away at once does not pass
// for a fast one.
//
// # Invariants
//
//   - A refusal takes nothing, from none of the limits.
//   - Over any stretch of time no more messages begin than the rate yields in it and
//     what may be saved up: a tenth of a second's worth, or a whole batch within a
//     second's worth, at least one; only a batch that is larger than that
//     goes beyond, by what it is larger, and the next ones wait for it.
//   - No delivery begins when the adaptive limit is reached. A limit that falls
//     does not touch what is in work.
//   - An open breaker admits nothing until its delay is over, and then Trials at
//     once, however long ago that was.
//   - A result counts for the breaker only in the state in which its delivery
//     began: what was in work when it opened decides no trial.
//   - A refusal that says to wait for the next Done has one to wait for.
//
// # When something fails
//
// A trial that hangs keeps the breaker half-open for as long: the time-outs of the
// delivery end it. A Done that was never allowed is ignored when nothing is in
// work; else it ends a delivery of another's too early. A Done that never comes
// keeps a place for ever. Times that run backwards stand still.
//
// # What the adaptive limit does
//
// It moves by one about once a second, or every 50 deliveries where that takes
// longer, so that it takes a minute to find its place. Without rest it swings
// around what the app can take rather than standing still, because only trying
// tells. Against a simulated app that works on k requests at once, 100 ms each,
// with 100 slots that always have work:
//
//	 k   limit on average   at most   of the app's best
//	 5         12              20            87 %
//	10         15              24            89 %
//	30         28              38            84 %
//
// So it keeps an app with few places from being drowned, at the price of a tenth of
// what a limit set by hand would get out of it. Who knows k sets the worker's
// concurrency to it instead.
//
// # What it does not do
//
// It starts no goroutine and never sleeps: who was refused asks again. It does not
// keep the worker's own concurrency, does not decide about messages, and knows
// nothing of apps that take no connections: those the worker probes by itself. The
// window of the breaker and the times of the adaptive limit are measured on the
// libraries' clock, which is the system's, and everything else by the caller's now.
package limit
