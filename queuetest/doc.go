// Package queuetest checks that something behaves like a queue.
//
// It has two parts, both for the tests of other packages.
//
// [Suite] is the conformance suite: what SQS documents, or was observed to do, as
// checks that run against anything with the methods of [Queue]. The embedded queue
// and the adapter for Amazon SQS pass the same suite, so a worker cannot tell them
// apart:
//
//	Suite ─┬─> broker, in process, in virtual time
//	       ├─> aws ── HTTP ──> sqsapi ──> broker
//	       └─> aws ── HTTP ──> moto, ElasticMQ and MiniStack, written by others
//
// A check that a server is known to fail is listed with what the server does
// instead ([Suite.Differs]). It runs nevertheless, is reported as skipped, and fails
// the suite when it passes. Checks that need minutes run in virtual time only.
//
// [Fake] is a queue in memory that fails on command, for tests of code that uses a
// queue.
//
// # Invariants
//
// The checks share nothing, not even queue names, and run in parallel. None requires
// that something is fast. When a check looks at a state that lasts only a second or
// two, and the machine was too slow to look in time, the check runs again.
//
// # What it does not do
//
// It does not check the wire protocol: the golden exchanges in package sqsapi do.
package queuetest
