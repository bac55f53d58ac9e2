// Package sqsapi serves a broker over the SQS wire protocol.
//
// AWS SDKs use a [Handler] as Amazon SQS when AWS_ENDPOINT_URL_SQS points to it. It speaks AWS JSON 1.0, which SDKs
// have used since November 2023, and the older Query protocol.
//
//	POST /   X-Amz-Target: AmazonSQS.SendMessage   {"QueueUrl":…}
//	POST /account/queue                            Action=SendMessage&MessageBody=…
//	   |
//	rejectBrowser   Host? a browser?                   -> 403
//	   |
//	buffer       at most MaxBody bytes                 -> 413
//	   |
//	parameters: decodeJSON, decode                     -> 400
//	   |         UTF-8, depth, number of values, types
//	action       typed request -> typed response       -> *queue.Error
//	   |            |
//	   |         broker: Send, Receive, Delete, ...
//	   |
//	replyForm    response, or error with the protocol's code and text
//
// The tags of an [action]'s types describe it for both protocols. The broker validates messages and queues, so that the
// rules are the same for all its callers.
//
// With [Options.Keys], every request must be signed (package access). Without keys, every client may use the queues, so
// listen only on loopback addresses and Unix sockets. Requests from web pages are rejected.
//
// # Invariants
//
//   - SendMessage succeeds only after the message is durable.
//   - Input is stored byte for byte or refused: invalid UTF-8 and unpaired surrogates are not replaced.
//   - The limits in decode.go bound the memory of a request before parsing.
//   - Replies have a request ID. Error replies and errors passed to [Options.Failed] contain no message bodies.
package sqsapi
