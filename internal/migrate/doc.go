// Package migrate moves all messages of a queue to another and accounts for each.
//
//	Take -> Intend (journal) -> Send -> Accept (journal, fsync) -> Delete
//
// A message is deleted only after the destination has acknowledged it and the [Journal] has recorded this on disk. If a
// run is killed, the next one continues. On a standard queue, messages with an unknown outcome are sent again. On a
// FIFO queue, they are sent again within the deduplication interval, because their deduplication ID is derived from
// the message ID. After that, Options.Uncertain decides, or else the destination's message count. If the count is
// inconclusive, [Run] returns [ErrUncertain].
//
// On a FIFO queue, a batch contains at most one message per group, so that none overtakes a rejected one.
package migrate
