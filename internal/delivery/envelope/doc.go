// Package envelope unwraps messages that contain another message: SNS notifications and pointers to S3 objects.
//
// Both are parsed from the message alone. Only an [Opener] does I/O, through the
// [Fetcher] that it was given.
//
//	message --> SNS --> inner message --> Opener.Open --> the message for the app
//	             |                            |
//	             | plain, raw delivery or     | not a pointer: unchanged
//	             | confirmation: unchanged    | a pointer: the payload of the S3 object
//	                                          | refused, not found, too large: an error
//
// The order matters: the extended client for SNS puts its pointer, and the attribute
// that marks it, into a notification.
//
// # Invariants
//
//   - The given message is never changed. The inner message has its id, receipt
//     handle, counts and times, and is deleted with the same receipt handle.
//   - A message alone cannot cause a request. A URL in a notification is never visited,
//     not even the one that confirms a subscription. An object is fetched only from a
//     bucket that the user allowed.
//   - A notification cannot pass for a scheduled run of a periodic task: attributes
//     with those names are left out.
//   - The errors of an Opener contain neither the body nor the object key.
//
// # What it does not do
//
// It does not verify the signature of a notification: the queue's policy decides who
// may send. It does not delete a payload from S3 when the message is deleted; give the
// bucket a lifecycle rule.
package envelope
