// Package webhook signs POSTs as the specification Standard Webhooks 1.0.0 says.
//
// A [Signer] renders three headers for one attempt to deliver a message:
//
//	webhook-id         the message's id, the same for every attempt
//	webhook-timestamp  the time of this attempt, in whole seconds since 1970
//	webhook-signature  a signature for each key, with blanks between
//
// What is signed is "id.timestamp.body", so a receiver notices a changed body, a message that pretends to be another
// one, and a request that somebody recorded and sends again later.
//
// A key is written as the specification writes it: whsec_ and base64 for a shared secret (signed by HMAC-SHA256, "v1"),
// whsk_ and base64 for the private part of an ed25519 pair ("v1a"). With several keys each of them signs, in their
// order: a receiver that knows one of them accepts the request, so keys are replaced without a gap.
//
// No error and no log line holds a key, or a part of one.
//
// The package verifies nothing: that is for the receiver, see docs/signing.md.
package webhook
