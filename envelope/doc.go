// Package envelope unwraps messages that carry another: notifications of SNS and
// pointers into S3.
//
// Both are pure look-ups in the message; only an [Opener] asks somebody else, the
// [Fetcher] that it was given.
//
//	message --> SNS --> inner message --> Opener.Open --> the message for the app
//	             |                            |
//	             | no envelope, a raw one,    | no pointer: as it is
//	             | a confirmation: as it is   | a pointer: the payload of the S3 object
//	                                          | refused, not found, too large: an error
//
// In this order, because the extended client for SNS puts its pointer, and the
// attribute that marks it, into a notification.
//
// # Invariants
//
//   - The message that is given is never changed. The inner one has its id, receipt
//     handle, counts and times: it is settled under the same receipt.
//   - Nothing is fetched because a message says so alone. An address in a
//     notification is never visited, also not the one that confirms a subscription;
//     an object is fetched only from a bucket that the user named.
//   - What comes by a topic cannot be a run of a periodic task: attributes of that
//     name are left behind.
//   - The error of an Opener tells neither the body nor the object's key.
//
// # What it does not do
//
// The signature of a notification is not checked: who may send to the queue is
// for the queue's policy to say. A payload is not deleted from S3 when its message
// is; give the bucket a lifecycle rule.
package envelope
