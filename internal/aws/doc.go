// Package aws is the only place that talks to Amazon.
//
// It supports SQS, DynamoDB, Lambda, S3, CloudWatch, EC2 Auto Scaling, ECS and its container agent, and compatible
// servers. [OpenSQS] reads the standard AWS configuration, and [SQS.Queue] finds a queue by name, URL or ARN. A
// [Queue] receives, deletes and sends messages, changes their visibility, and has the operations for operators.
//
//	worker ── Receive, Delete, ChangeVisibility ──┐            operator ── Create, List,
//	sender ── Send ───────────────────────────────┤                │       Attributes, Purge ...
//	                                              v                v
//	                            call: append, sign, POST,    the SDK's client
//	                            check, decode                      │
//	                              │  credentials, signature and    │
//	                              │  retry rules from the SDK      │
//	                              └────────> one transport <───────┘
//	                                                │
//	                                             Amazon SQS
//
// The four frequent calls bypass the SDK's client, because its middleware costs as much as the rest of a delivery
// (see the package's benchmark). Credentials, signatures, endpoints and retry rules still come from the SDK.
//
// # Invariants
//
//   - A receive is attempted once. A lost response has already increased the receive count of its messages, and an
//     immediate retry would receive more. The exception is a signature rejected because of the local clock.
//   - Deletes, visibility changes and sends are retried by the SDK's rules, and nowhere else.
//   - A Lambda function is invoked once. The call is repeated only if a reused connection failed before a byte was
//     sent, and every error reports whether a byte was sent.
//   - [DeadLetters] sends messages complete or not at all.
//   - A message with a wrong checksum is neither returned nor deleted.
//   - A message counts as deleted only if the response confirms it.
//   - The region in a queue's URL or ARN takes precedence. A configured endpoint replaces only the address.
//
// # Errors
//
// Errors are [tendril/queue.Error]. AccessDenied covers credentials and permissions. Unreachable covers everything
// that may work later: no response, a proxy's response, an internal error of the service. Messages state the cause
// and the fix. If the caller's context is canceled, the error is the context's.
//
// # Not in this package
//
// Callers do their own polling. Send does not split batches. Credentials are never options, and nothing is logged:
// [Events] report damaged messages and a wrong clock.
package aws
