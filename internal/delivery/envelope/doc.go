// Package envelope unwraps messages that contain another message: SNS notifications and pointers to S3 objects.
//
//	message --> SNS --> inner message --> Opener.Open --> the message for the app
//	             |                            |
//	             | plain, raw delivery or     | not a pointer: unchanged
//	             | confirmation: unchanged    | a pointer: the payload of the S3 object
//	                                          | refused, not found, too large: an error
//
// SNS envelopes are unwrapped first, because the extended client for SNS puts its pointer into the notification.
//
//   - The inner message is a copy with the same ID, receipt handle, counts and times.
//   - URLs in notifications are never requested, and objects are fetched only from allowed buckets.
//   - Attributes that mark scheduled runs are dropped, so a notification cannot pass as one.
//   - Errors contain neither the body nor the object's key.
//
// Signatures of notifications are not verified: the queue's policy decides who may send. Payloads are not deleted.
package envelope
