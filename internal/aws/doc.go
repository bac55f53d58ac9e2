// Package aws is the only place that talks to Amazon.
//
// That is SQS, DynamoDB, Lambda, S3, CloudWatch, Auto Scaling, ECS and the agent of its tasks, or
// any server that speaks their protocols. [OpenSQS] reads the configuration that every AWS tool
// reads; [SQS.Queue] finds a queue by name, URL or ARN; the [Queue] then has what a worker needs
// (Receive, Delete, ChangeVisibility), what a sender needs (Send), and what an operator needs.
//
//	worker ── Receive, Delete, ChangeVisibility ──┐            operator ── Create, List,
//	sender ── Send ───────────────────────────────┤                │       Attributes, Purge ...
//	                                              v                v
//	                            call: append, sign, POST,    the SDK's own client
//	                            check, decode                      │
//	                              │  asks the SDK for credentials, │
//	                              │  signature, retry rules        │
//	                              └──────────> one transport <─────┘
//	                                                │
//	                                             Amazon SQS
//
// The four hot calls are made by hand, because the SDK's middleware costs as
// much as the whole of the rest of a delivery; the package's benchmark shows
// by how much. Everything delicate in a call stays the SDK's: where
// credentials come from and when they are renewed, the signature, the endpoint
// of a region, and what is retried, after how long and how often in all.
//
// # Invariants
//
//   - A receive is tried once: an answer that was lost has counted a receive for
//     each message in it, and asking again at once would count more. It is
//     repeated only when our clock was rejected, because nothing was received then.
//   - Deletes, visibility changes and sends are repeated as the SDK's rules say.
//     Nothing below them repeats a request.
//   - A call of a function is made once. Only where a kept connection took no byte of it
//     does it go out on another; every error tells whether a byte had left.
//   - [DeadLetters] are sent with everything that their messages have, or not at all.
//   - A message whose body or attributes do not match their checksum is neither
//     handed out nor deleted.
//   - A delete counts as done only when the answer names it.
//   - The region that a queue's URL or ARN names is where it is looked for. An
//     endpoint that the user configured replaces the address only.
//
// # When something fails
//
// Errors are [tendril/queue.Error]: the codes of SQS as package queue knows
// them, AccessDenied for everything about credentials and permission, and
// Unreachable for all that is worth trying again later: no answer, an answer
// of a proxy, an internal error of the service. The message says what to
// check. When the caller's context ends, the error is the context's own.
//
// # What it does not do
//
// It has no loop: when to ask again is the worker's matter. It does not split
// a batch that is too large to send. It never takes credentials from an
// option, and never logs: [Events] tell of damaged messages and of a wrong clock.
//
// # Its size
//
// The package has more than 4,000 lines because it is the one place for eight services, each
// with the advice for its own refusals; a service is one to three files.
package aws
