// Package access decides who may call the queue endpoint, and for what.
//
// On loopback every caller is the owner. On any other address a [Keyring], read from the --credentials file,
// authenticates each request by its AWS Signature Version 4:
//
//	request ── Keyring.Verify ──▶ Caller ── Caller.Authorize(action, ARN, Policy) ──▶ served, or AccessDenied
//
// A key pair has all permissions, may only send, or is limited to a list of queues. As on Amazon SQS, a queue's
// [Policy] can grant a caller more permissions or deny any of them. Callers with all permissions can always repair a
// policy.
//
// Every rejected request gets the same error after the same amount of work, whether the key is unknown, the date too
// old or the signature wrong. Signatures always cover the host, the request target and the body. A policy that cannot
// be evaluated completely is rejected when it is set. Errors and String methods never reveal a secret.
//
// The credentials file is reloaded when it changes. If it cannot be read, the previous keys stay in use.
package access
