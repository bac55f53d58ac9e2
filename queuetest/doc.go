// Package queuetest checks that something behaves like a queue.
//
// Two things are here for the tests of other packages.
//
// [Suite] is the conformance suite: what SQS documents, or was seen to do, in
// checks that anything with a [Queue]'s methods can be put through. The
// embedded queue and the adapter for Amazon SQS pass the same one, so that a
// worker cannot tell them apart:
//
//	Suite ─┬─> broker, in process, in virtual time
//	       ├─> aws ── HTTP ──> sqsapi ──> broker
//	       └─> aws ── HTTP ──> moto, which nobody here wrote
//
// A check that a server is known to fail is listed with what the server does
// instead ([Suite.Differs]); it is run all the same, reported as skipped, and
// fails the suite on the day it passes. Checks that need minutes run in
// virtual time only.
//
// [Fake] is a queue in memory that fails on command, for tests of those who
// use a queue.
//
// Invariants: the checks share nothing, not even queue names, and run in
// parallel; none asserts that something was fast. Where a check looks at what
// stays so for a second or two only, and the machine was too slow to look in
// time, it is run again.
//
// What it does not do: it does not look at the wire. That is the matter of the
// golden exchanges in package sqsapi.
package queuetest
