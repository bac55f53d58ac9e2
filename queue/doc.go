// Package queue holds the words everything else shares.
//
// A [Message] is what one receive gave out; an [Outgoing] is what a producer
// hands in; a [Result] is what became of one delivery; an [Error] says why a
// queue refused. There is no I/O here and nothing here imports another package
// of this module, so that the steps of a message's way can talk about the same
// things without knowing each other.
//
// Names follow Amazon SQS: message, receipt handle, visibility timeout, in
// flight, receive count, dead-letter queue, redrive.
package queue
