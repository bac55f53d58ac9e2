// Package webhook signs POSTs according to Standard Webhooks 1.0.0.
//
// A [Signer] renders three headers for each attempt to deliver a message:
//
//	webhook-id         the message's ID, the same for every attempt
//	webhook-timestamp  the time of this attempt, in whole seconds since 1970
//	webhook-signature  a signature per key, separated by blanks
//
// The signature covers "id.timestamp.body", so receivers detect changed bodies, forged IDs and replayed requests.
//
// Keys have the format of the specification: whsec_ and base64 for a shared secret (HMAC-SHA256, "v1"), whsk_ and
// base64 for an ed25519 private key ("v1a"). Every configured key signs, and receivers accept a request if they know
// one of them, so keys can be rotated without interruption. Errors and logs never contain keys.
//
// Receivers verify signatures themselves, see docs/signing.md.
package webhook
