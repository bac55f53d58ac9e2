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
// Memory holds a window of each queue's next visible messages and every received message, so most receives need no disk
// I/O.
//
// The writer commits all pending requests in one transaction, with an fsync if any must be durable. Deletes need none:
// they survive kill -9, but a message deleted before a power failure may be delivered again.
//
// # Invariants
//
//   - A send is acknowledged once on disk. The message is then in exactly one queue until it is deleted, expired or
//     purged, in a transaction that also updates the queue's [Ledger].
//   - Readers ignore a row until its request has been notified of the commit (index.published).
//   - A key is never reused. New messages get keys at the end of their queue's range.
//   - Memory holds every message whose state is not fully in its row (index.held).
//   - A message that a request is about to remove is marked as leaving, and no other request touches it.
//   - A queue's lock is never held during disk I/O, except to reload the queue, and the locks of two queues are never
//     held at once.
//
// # Durability
//
// Acknowledged sends and deletes, receive counts, visibility deadlines and attempts survive kill -9, except
// deadlines and attempts of the last 400 ms. A power failure may also lose the latest deletes and receives.
//
// After a failed write or fsync, all requests return StorageFailed until the broker has reopened the file; it logs
// an error if acknowledged messages are missing. On a nearly full disk, sends are refused so that receives and
// deletes can continue.
//
// There is no replication and no rate limit. Encryption keys are stored but not used. Callers evaluate policies
// ([Broker.Policy]).
package broker
