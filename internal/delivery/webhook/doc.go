// Package webhook signs POSTs according to Standard Webhooks 1.0.0.
//
// A [Signer] renders three headers for each attempt:
//
//	webhook-id         the message's ID, the same for every attempt
//	webhook-timestamp  the time of this attempt, in whole seconds since 1970
//	webhook-signature  a signature of "id.timestamp.body" per key, separated by spaces
//
// A key is whsec_ and a shared secret (HMAC-SHA256, "v1") in base64, or whsk_ and an ed25519 private key ("v1a") in
// base64. Receivers accept any signature with a key they know, so keys can be rotated without interruption. Errors
// never contain keys. Verification is described in docs/signing.md.
package webhook
