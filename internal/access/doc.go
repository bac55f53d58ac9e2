// Package access decides who may call the queue endpoint, and for what.
//
// On loopback, every caller is the owner. On any other address, a [Keyring] authenticates each request by its AWS
// Signature Version 4:
//
//	request ── Keyring.Verify ──▶ Caller ── Caller.Authorize(action, ARN, Policy) ──▶ served, or AccessDenied
//
// A key pair has all permissions, may only send, or is limited to a list of queues. As on Amazon SQS, a queue's
// [Policy] can grant more permissions or deny any of them.
//
// Every rejected signature gets the same error. Errors and String methods never reveal a secret.
package access
