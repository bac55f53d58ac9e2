// Package queuetest checks implementations of a queue.
//
// [Suite] is a conformance suite of SQS behavior, documented or observed. It runs against any type that implements
// [Queue]. Since the embedded queue and the adapter for Amazon SQS pass the same suite, a worker
// cannot tell them apart:
//
//	Suite ─┬─> broker, in process, in virtual time
//	       ├─> aws ── HTTP ──> sqsapi ──> broker
//	       └─> aws ── HTTP ──> moto, ElasticMQ and MiniStack (third party)
//
// Known deviations of a server are listed in [Suite.Differs]. These checks still run, are reported as skipped, and
// fail the suite if they pass. Checks that take minutes run only in virtual time.
//
// [Fake] is an in-memory queue that fails on command.
//
// Checks run in parallel and share no state, not even queue names. They need no fast machine: a check that was too
// slow to observe a short-lived state runs again. The wire protocol is covered by the golden exchanges in package
// sqsapi.
package queuetest
