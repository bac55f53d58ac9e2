// Package broker is a durable queue that behaves like SQS.
//
// A [Broker] holds any number of standard and FIFO queues in one data
// directory. It speaks Go; package sqsapi puts the wire protocol in front.
//
//	Send, Delete, Move, CreateQueue ...          Receive, ChangeVisibility
//	       |  requests                                  |  under the queue's lock
//	       v                                            v
//	 +--------------+   publish after commit   +-----------------------------+
//	 | writer       | -----------------------> | liveQueue, its index        |
//	 | one goroutine|                          |  order: next to deliver     |
//	 | group commit |                          |  inFlight: by deadline      |
//	 +--------------+                          |  held: received before      |
//	       |  one transaction                  |  delays: how many end when  |
//	       v                                   +-----------------------------+
//	 +---------------------------------+   fill when low    ^
//	 | SQLite: queues.db, its log      | -------------------+
//	 +---------------------------------+   contents that memory does not hold
//
// The table of messages is the truth. Memory holds an index of each queue: the window of the
// next visible messages, and all that were received and are still there, so that a
// receive reads no disk and writes none.
//
// # The way of a message
//
// Send gives a request to the writer. It takes what is pending into one
// transaction and commits it, with an fsync if any of it must not be lost;
// requests that arrive meanwhile make up the next group. After the commit the message
// is published to its queue, and Send returns. Receive takes messages from the
// window, hides them until the visibility timeout ends, and gives
// each a receipt handle that nobody can forge. Delete is a commit without an
// fsync: it survives kill -9, and a power failure may undo it, which costs a
// second delivery and no message.
//
// On a standard queue a group id names a tenant. Messages of noisy tenants, those with many messages in
// flight or much of the processing time, are parked and given out after those of others. Behind a backlog
// of noisy tenants that memory does not hold, the window reads ahead for the others.
//
// A message whose receives are used up is moved to the dead-letter queue by the
// receive that would have been one too many, or before by whoever has its receipt ([Queue.DeadLetter]).
// Messages past their retention are removed by a sweep that is due when the oldest message expires.
//
// An operator moves or deletes one message, or all that a [Filter] means: the latter is a task
// ([Broker.StartMoveTask]) that goes through the queue in small transactions, counts in the same ones, and goes on
// after a restart.
//
// The last attempts that failed are kept with a message ([Broker.RecordAttempt]), under the message's key: what moves
// the message moves them, and what removes it removes them. They are written in batches, a moment late, and nobody
// waits for that. A table counts the messages of each queue by why they failed last ([Broker.DeadLetterReasons]).
//
// # Invariants
//
//   - A send is acknowledged after it is on disk; the message then lies in
//     exactly one queue until it is deleted, moved, expired or purged, and each
//     of these is counted in the queue's [Ledger] by the same transaction.
//   - A row counts, for those who read rows, once its request was told of the commit (index.published).
//   - A key is never used twice. Messages arrive at the right edge of their
//     queue's range of keys.
//   - Memory holds every message of which it knows something that the row does
//     not say (index.held); all others can be dropped and read again.
//   - A message that a request is about to take away is marked as leaving; no
//     other request touches it until the commit has ended.
//   - A row of attempts belongs to a message that is there, or to a range that was purged and is
//     being removed. A message that never moved has a row in receipts too, so that removing it
//     after a restart looks for attempts. The counts of reasons change in the same transaction.
//   - A queue's lock is never held while the disk is waited for, and no two
//     queues' locks are held at once.
//
// # What holds over a restart
//
// After Close everything. After kill -9 every acknowledged send and delete, the receive counts, the
// deadlines of messages in flight and the attempts, except for deadlines and attempts of
// the last fifth of a second: these are written down a moment late, since most
// messages are deleted sooner. Receives of that time have marks in a mapped file, and count
// ([Queue.Posting] says which of a worker's do); their messages are visible
// at once. On a FIFO queue the receipt of such a message has expired, on a standard queue it
// still deletes. Attempt ids of FIFO receives are not kept. After a power failure, which may
// take the marks, receives of the last moment may be forgotten. Reopening takes the same
// time at any depth.
//
// # Failures
//
// A failed write or fsync is fatal for the open file: all requests are refused
// with StorageFailed until the file was opened again and found to hold all that
// was acknowledged; that is tried for as long as the process lives. What the
// failed commit left behind, all or nothing, is taken over as it is. On a full
// disk only sends are refused (StorageFull), and early enough that receives and
// deletes go on. Attempts are refused like sends, and lost. A row whose checksum is wrong is neither delivered nor moved:
// see [Damaged]. A damaged file is not taken into use again. A missing one is not replaced: see [CreatedFile]. A directory
// that another process holds is not opened ([ErrInUse]).
//
// # What it does not do
//
// It does not replicate: a lost disk is a lost queue. It does not limit rates. Policies and encryption
// keys are stored as given, and have no effect here.
//
// # Its size
//
// The package has more than 4,000 lines because the index in memory, the writer and the
// tables on disk keep one set of invariants: every operation touches all three under the
// same locks, and a package between them would have to export what nobody else may call.
package broker
