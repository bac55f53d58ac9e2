// Package queue defines the types that every other package shares.
//
// A [Message] is the result of one receive; an [Outgoing] is a message to send; a
// [Result] is the outcome of one delivery to the app; a [DeadLetter] is a message that
// failed for the last time; an [Error] is the answer of a
// queue that rejected a request. A [Lease] decides which instance is the leader.
//
// There is no I/O here, and the package imports no other package of this module, so
// the packages that handle a message one after the other can share these types without
// knowing each other.
//
// Names follow Amazon SQS: message, receipt handle, visibility timeout, in flight,
// receive count, dead-letter queue, redrive.
package queue
