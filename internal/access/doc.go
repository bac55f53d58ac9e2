// Package access decides who may call the queue endpoint, and for what.
//
// On loopback every caller is the owner. On any other address a [Keyring], read from the file that
// --credentials names, authenticates each request by its AWS Signature Version 4, the signature that every AWS
// SDK makes, and tells what the key pair may do:
//
//	request ── Keyring.Verify ──▶ Caller ── Caller.Authorize(action, ARN, Policy) ──▶ served, or AccessDenied
//	             |
//	             header or query form, session token, date within 15 minutes, SHA-256 of the body
//
// A key pair has everything, may only send, or is confined to a list of queues. A queue's own [Policy] can allow a
// caller more and deny it anything, as on Amazon SQS. Callers with every right can always repair a policy.
//
// # Invariants
//
//   - A request that is refused learns one thing: that it is refused. Whether the key exists, the date is too old or
//     the signature is wrong is the same error, and takes the same work.
//   - Signatures and tokens are compared in constant time.
//   - What a signature does not cover cannot change what the request does: the host, the target and the body are
//     always covered.
//   - A policy with a part that is not evaluated here is refused when it is set: none is stored that only seems to
//     protect.
//   - No error and no String holds a secret.
//
// The file is read again when it changes; a file that cannot be read leaves the keys as they were.
package access
