// Package access decides who may call the queue endpoint, and for what.
//
// Without a credentials file, every caller is the owner. With one, a [Keyring] authenticates each request by its AWS
// Signature Version 4:
//
//	request ── Keyring.Verify ──▶ Caller ── Caller.Authorize(action, ARN, Policy) ──▶ served, or AccessDenied
//
// A key pair can be limited to sending, to a list of queues, or to both. As on Amazon SQS, a queue's [Policy] can grant
// and deny permissions. It cannot keep callers with all permissions from replacing it.
//
// Every rejected signature gets the same error. Errors and String methods never reveal a secret.
package access
