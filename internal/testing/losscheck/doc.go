// Package losscheck finds messages that a queue lost, invented, repeated or brought back.
//
// A test notes in a [Log] what it asked a queue and what the queue acknowledged, by a key of each
// message such as its body, also across crashes of the queue. [Log.Check] compares that with the
// messages that are stored in the end. It needs no queue of its own, so the tests that kill
// processes, fail disks and break connections share it.
package losscheck
