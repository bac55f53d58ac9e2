// Package migrate moves the messages of one queue to another one, and accounts for each.
//
// [Run] takes messages from a [Source], sends them to a [Destination], and deletes at the source what the destination
// has accepted. Either may be the embedded queue or Amazon SQS: package main of the command fits them to the
// interfaces.
//
//	Take -> Intend (journal) -> Send -> Accept (journal, fsync) -> Delete
//
// # What holds
//
// Nothing is lost: a message is deleted after the destination has acknowledged it and the [Journal] says so on disk.
//
// A run that was killed is continued by the next one. The journal says of each message whether it was accepted: then it
// is only deleted. Of those in the last calls it knows that they were to be sent, and not what became of them. On a
// standard queue they are sent again, at least once is what such a queue promises, and they are counted as resent. On a
// FIFO queue each message has a deduplication id made of its id at the source, so within the five minutes of
// deduplication sending again is harmless. After that the destination's count tells, where it can: [ErrUncertain]
// where it cannot, and then a person decides.
//
// On a FIFO queue there is at most one message of a group in a call, so that a refused one is not overtaken; the rest
// of its group stays at the source.
//
// # Counts
//
// [Result.Reconcile] compares both queues with what they held before the first run.
package migrate
