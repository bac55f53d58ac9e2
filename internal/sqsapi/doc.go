// Package sqsapi serves a broker over the SQS wire protocol.
//
// AWS SDKs work with a [Handler] as with Amazon SQS when AWS_ENDPOINT_URL_SQS points to it. It speaks AWS JSON 1.0,
// which SDKs have used since November 2023, and the older Query protocol.
//
//	POST /   X-Amz-Target: AmazonSQS.SendMessage   {"QueueUrl":…}
//	POST /account/queue                            Action=SendMessage&MessageBody=…
//	   |
//	guard        Host? a browser?                      -> 403
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
// The request and response types of an [action] describe it for both protocols: json tags give the JSON names, and
// query tags the Query names where they differ. Actions validate a single request: required parameters, ranges, batch
// rules. The broker validates messages and queues, so that the rules are the same for all its callers.
//
// The most frequent messages have hand-written encoders and decoders, for speed and a smaller stack; tests compare
// them with encoding/json. A waiting long poll keeps its stack, so a test ensures that the calls from
// [Handler.ServeHTTP] to the broker's wait fit into 4 KiB.
//
// # Access control
//
// With [Options.Keys], every request must be signed with a key pair that has the necessary permissions (package
// access). Without keys, every client may use the queues, and the registry requires its token; the server should then
// listen only on loopback addresses and Unix sockets.
//
// The guard protects against web pages in a browser on this machine. Their requests carry Origin, Referer or Sec-*
// headers, which SDKs do not send; the Host header reveals DNS rebinding. Browsers send forms, which are valid Query
// requests, without a preflight, so Query requests with Accept-Language are refused too. Replies never have CORS
// headers.
//
// # Invariants
//
//   - SendMessage succeeds only after the message is durable.
//   - Input is stored byte for byte or refused: invalid UTF-8 and unpaired surrogates are not replaced.
//   - The limits in decode.go bound the memory of a request before parsing.
//   - Replies have a request ID. Error replies and errors passed to [Options.Failed] contain no message bodies.
//
// If a reply cannot be written, its messages become visible again after their visibility timeout, as in SQS. A full
// disk is status 507; a closing or recovering store is 503, which SDKs retry. The cause of an unexpected error (500)
// goes to [Options.Failed], not to the client.
//
// There are no rate limits, no encryption at rest and no TLS, which is left to the server. The package has more than
// 3,000 lines because it implements every action for two protocols.
package sqsapi
