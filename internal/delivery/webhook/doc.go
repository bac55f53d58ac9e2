// Package webhook signs POSTs according to Standard Webhooks 1.0.0.
//
// A [Signer] renders three headers for each attempt to deliver a message:
//
//	webhook-id         the message's ID, the same for every attempt
//	webhook-timestamp  the time of this attempt, in whole seconds since 1970
//	webhook-signature  a signature of "id.timestamp.body" per key, separated by blanks
//
// Keys have the format of the specification: whsec_ and base64 for a shared secret (HMAC-SHA256, "v1"), whsk_ and
// base64 for an ed25519 private key ("v1a"). Receivers accept a request if they know one of the keys, so keys can be
// rotated without interruption. Errors never contain keys.
//
// Receivers verify signatures themselves, see docs/signing.md.
package webhook
