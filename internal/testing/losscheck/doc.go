// Package losscheck detects messages that a queue lost, invented, duplicated or resurrected.
//
// A test records its requests and the queue's acknowledgements in a [Log], by a unique key per message, even across
// crashes of the queue. [Log.Check] compares them with the messages stored at the end.
package losscheck
