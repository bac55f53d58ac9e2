// Package aws contains the clients for AWS, which no other package calls.
//
//	worker ── Receive, Delete, ChangeVisibility ──┐            operator ── Create, List,
//	sender ── Send ───────────────────────────────┤                │       Attributes, Purge ...
//	                                              v                v
//	                            call: append, sign, POST,    the SDK's clients
//	                            check, decode                (other services too)
//	                              v                                │
//	                            exchanger <────────────────────────┘
//	                              └──── proxy? ────> http.Transport <──── S3, Lambda
//
// The four frequent calls bypass the SDK's client, because its middleware costs as much as the rest of a delivery. Most
// calls bypass http.Transport (decisions 0191 and 0198).
//
// # Invariants
//
//   - A receive is attempted once, because a lost response has already increased receive counts, unless its signature
//     is rejected because of the local clock.
//   - Messages with a wrong checksum are neither returned nor deleted.
//   - The region in a queue's URL or ARN takes precedence. A configured endpoint replaces only the address.
//
// Errors of calls wrap [tendril/queue.Error] or the context's error. The code AccessDenied covers credentials and
// permissions, Unreachable every other cause that may be temporary, except throttling.
package aws
