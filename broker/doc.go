// Package broker is a durable queue that behaves like SQS.
//
// A [Broker] holds standard and FIFO queues in one data directory. Package sqsapi adds the wire protocol.
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
// messages, and every received message that is still in the queue. Receives therefore need no disk I/O.
//
// The writer commits all pending requests in one transaction, with an fsync if any of them must be durable. Deletes
// commit without an fsync: they survive kill -9, but a power failure may undo them, so that the message is delivered
// again.
//
// On a standard queue, a message group ID names a tenant. Messages of noisy tenants are delivered after the others.
//
// # Invariants
//
//   - A send is acknowledged after it is on disk. From then on the message is in exactly one queue until it is
//     deleted, moved, expired or purged. The transaction that removes it also updates the queue's [Ledger].
//   - Readers ignore a row until its request has been notified of the commit (index.published).
//   - A key is never reused. New messages get keys at the end of their queue's range.
//   - Memory holds every message whose state is not fully in its row (index.held).
//   - A message that a request is about to remove is marked as leaving. Other requests do not touch it.
//   - A row in attempts belongs to a message in the queue or to a purged range. If a message with attempts was never
//     moved, it also has a row in receipts, so that deleting it after a restart also deletes the attempts.
//   - A queue's lock is never held during disk I/O, and the locks of two queues are never held at once.
//
// # Durability
//
// All state survives Close, except the attempt IDs of FIFO receives. Acknowledged sends and deletes, receive counts,
// visibility deadlines and attempts survive kill -9, except deadlines and attempts of the last 200 ms. Receives of
// that time are marked in a memory-mapped file and still count (see [Queue.Posting]), but their messages become
// visible at once. A power failure may lose the latest receives.
//
// After a failed write or fsync, all requests return StorageFailed until the broker has reopened the file and
// verified that it holds all acknowledged data. A full disk refuses sends and attempts early enough for receives and
// deletes to continue. Rows with a wrong checksum are neither delivered nor moved ([Damaged]).
//
// # Limitations
//
// There is no replication: if the disk is lost, so are its queues. There are no rate limits. Encryption keys are stored
// but not used. Callers evaluate policies ([Broker.Policy]).
package broker
