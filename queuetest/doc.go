// Package queuetest checks implementations of a queue.
//
// [Suite] is a conformance suite of behavior that SQS documents or was observed to have. It runs against anything with
// the methods of [Queue]. Since the embedded queue and the adapter for Amazon SQS pass the same suite, a worker
// cannot tell them apart:
//
//	Suite ─┬─> broker, in process, in virtual time
//	       ├─> aws ── HTTP ──> sqsapi ──> broker
//	       └─> aws ── HTTP ──> moto, ElasticMQ and MiniStack (third party)
//
// Known deviations of a server are listed in [Suite.Differs]. These checks still run, are reported as skipped, and
// fail the suite if they pass. Checks that take minutes run in virtual time only.
//
// [Fake] is an in-memory queue that fails on command.
//
// Checks run in parallel and share nothing, not even queue names. They do not require speed: a check that was too
// slow to observe a short-lived state runs again. The wire protocol is covered by the golden exchanges in package
// sqsapi.
package queuetest
