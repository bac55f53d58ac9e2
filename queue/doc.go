// Package queue defines the types that every other package shares.
//
// A [Message] is the result of a receive, an [Outgoing] a message to send, a [Result] the outcome of a delivery to
// the app, a [DeadLetter] a message that failed for the last time, and an [Error] the reason a queue rejected a
// request. A [Lease] decides which instance is the leader.
//
// The package does no I/O and imports no other package of this module. Names follow Amazon SQS.
package queue
