// Package broker is a durable queue that behaves like SQS.
//
// A [Broker] holds any number of standard and FIFO queues in one data directory and offers them as Go calls. Package
// sqsapi adds the wire protocol.
//
//	Send, Delete, Move, CreateQueue ...          Receive, ChangeVisibility
//	       |  requests                                  |  under the queue's lock
//	       v                                            v
//	 +--------------+   publish after commit   +-----------------------------+
//	 | writer       | -----------------------> | liveQueue, its index        |
//	 | one goroutine|                          |  order: next to deliver     |
//	 | group commit |                          |  inFlight: by deadline      |
//	 +--------------+                          |  held: received before      |
//	       |  one transaction                  |  delays: counts by due time |
//	       v                                   +-----------------------------+
//	 +---------------------------------+   fill when low    ^
//	 | SQLite: queues.db, its log      | -------------------+
//	 +---------------------------------+   messages not in memory
//
// The messages table is the source of truth. Memory holds an index of each queue: a window of the next visible
// messages, plus every message that was received and is still in the queue. A receive therefore neither reads nor
// writes the disk.
//
// # The life of a message
//
// Send passes a request to the writer, which commits all pending requests in one transaction, with an fsync if any of
// them must be durable. Requests that arrive meanwhile form the next group. After the commit the message is published
// to its queue and Send returns. Receive takes messages from the window, hides them until the visibility timeout
// expires and gives each an unforgeable receipt handle. Delete commits without an fsync: it survives kill -9, but a
// power failure may undo it, which costs a second delivery and never a message.
//
// On a standard queue a message group ID names a tenant. A tenant is noisy if it has many messages in flight or uses
// much of the processing time; its messages are parked and delivered after the others. If a backlog of noisy tenants
// exceeds the window, the window reads ahead for the other tenants.
//
// A message that exceeds its maximum receive count moves to the dead-letter queue on the next receive, or earlier if
// its receiver calls [Queue.DeadLetter]. A sweep, scheduled for when the oldest message expires, removes messages
// past their retention.
//
// An operator moves or deletes a single message, or all messages that match a [Filter]. The latter runs as a task
// ([Broker.StartMoveTask]) in small transactions, which also record its progress, and resumes after a restart.
//
// The last failed attempts are stored under the message's key ([Broker.RecordAttempt]), so they move and disappear
// with the message. They are written asynchronously in batches. A table counts the messages of each queue by the
// reason of their last failure ([Broker.DeadLetterReasons]).
//
// # Invariants
//
//   - A send is acknowledged after it is on disk. From then on the message is in exactly one queue until it is
//     deleted, moved, expired or purged, and the same transaction counts that in the queue's [Ledger].
//   - Readers ignore a row until its request has been notified of the commit (index.published).
//   - A key is never reused. Messages arrive at the right edge of their queue's range of keys.
//   - Memory holds every message whose state is not fully in its row (index.held); all others can be dropped and reread.
//   - A message that a request is about to remove is marked as leaving; other requests leave it alone until
//     the commit has completed.
//   - A row of attempts belongs to a message in the queue, or to a purged range that is being removed. If the message
//     never moved, it has a row in receipts too, so that removing it after a restart also removes its attempts. The
//     counts of reasons change in the same transaction.
//   - A queue's lock is never held during disk I/O, and no two queues' locks are held at once.
//
// # Durability
//
// Everything survives Close. Every acknowledged send and delete survives kill -9, as do receive counts, deadlines of
// messages in flight and attempts, except deadlines and attempts of the last fifth of a second: they are written with
// a delay because most messages are deleted first. Receives of that time are recorded in a memory-mapped file and
// count ([Queue.Posting] decides which of a worker's do), but their messages are visible at once. The receipt of such
// a message has expired on a FIFO queue and still deletes it on a standard queue. Attempt IDs of FIFO receives are
// not kept. A power failure may lose the mapped file, and with it the latest receives. Reopening takes the same time
// at any depth.
//
// # Failures
//
// A failed write or fsync is fatal for the open file: all requests return StorageFailed until the file has been
// reopened and verified to hold everything acknowledged. The broker retries that for as long as the process lives.
// The failed commit counts if it turns out to be in the file. A full disk refuses only sends and attempts
// (StorageFull), early enough for receives and deletes to continue. A row with a wrong checksum is neither delivered
// nor moved ([Damaged]). A damaged file is never put back into service, a missing one is not replaced
// ([CreatedFile]), and a directory held by another process is not opened ([ErrInUse]).
//
// # Limitations
//
// There is no replication: a lost disk is a lost queue. There are no rate limits. Encryption keys are stored but
// unused; policies are stored for the caller to evaluate ([Broker.Policy]).
//
// # Size
//
// The package has more than 4,000 lines because the in-memory index, the writer and the tables on disk share one set
// of invariants. Every operation touches all three under the same locks, so splitting them would export their
// internals.
package broker
