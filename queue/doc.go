// Package queue defines the types that every other package shares.
//
// A [Message] is the result of a receive, an [Outgoing] a message to send, a [Result] the outcome of a delivery to the
// app, and an [Error] the reason a queue rejected a request. Names follow Amazon SQS.
package queue
