// Package migrate moves all messages of a queue to another and accounts for each.
//
// [Run] takes messages from a [Source], sends them to a [Destination], and deletes accepted messages from the source.
// Either can be an embedded queue or Amazon SQS; the command implements the interfaces.
//
//	Take -> Intend (journal) -> Send -> Accept (journal, fsync) -> Delete
//
// # Guarantees
//
// No message is lost: it is deleted only after the destination has acknowledged it and the [Journal] has recorded
// this on disk.
//
// If a run is killed, the next one continues. Messages that the journal records as accepted are only deleted. The
// outcome of the last calls may be unknown. On a standard queue, which is at-least-once anyway, these messages are
// sent again and counted as resent. On a FIFO queue, the deduplication ID is derived from the message ID, so sending
// again is safe within the deduplication interval of five minutes. After that, the destination's message count
// decides if possible; otherwise Run returns [ErrUncertain] and the user decides.
//
// On a FIFO queue, a batch contains at most one message per group, so that a rejected message is not overtaken. The
// rest of its group stays at the source.
//
// [Result.Reconcile] compares both queues' message counts with those before the first run.
package migrate
