// Package queuetest checks implementations of a queue.
//
// [Suite] is a conformance suite of documented or observed SQS behavior. It runs against any type that implements
// [Queue]. The embedded queue and the adapter for Amazon SQS pass the same suite, except that only SQS counts
// unread receives. [Suite.Differs] lists the known deviations of a server.
//
// [Fake] is an in-memory queue that fails on command.
//
// Checks run in parallel, share no state and do not need a fast machine: a check that was too slow to observe a
// short-lived state runs again. The golden exchanges in package sqsapi cover the wire protocol.
package queuetest
