// Package sqsapi serves a broker over the SQS wire protocol.
//
// AWS SDKs work with a [Handler] as with Amazon SQS when AWS_ENDPOINT_URL_SQS points to it: actions, parameters,
// limits, digests, error codes and texts are the same. It speaks both protocols: AWS JSON 1.0, which SDKs have used
// since November 2023, and the older Query protocol with form or query-string requests and XML replies.
//
//	POST /   X-Amz-Target: AmazonSQS.SendMessage   {"QueueUrl":…}
//	POST /account/queue                            Action=SendMessage&MessageBody=…
//	   |
//	guard        Host? a browser?                      -> 403
//	   |
//	buffer       at most 6 MiB and a bit               -> 413
//	   |
//	parameters: decodeJSON, decode                     -> 400
//	   |         UTF-8, depth, number of values, types
//	action       typed request -> typed response       -> *queue.Error
//	   |            |
//	   |         broker: Send, Receive, Delete, ...
//	   |
//	replyForm    response, or error with the protocol's code and text
//
// # Actions
//
// The request and response types of an action describe it for both protocols: json tags give the JSON names, query
// tags the differing Query names of lists and maps. parameters.go and xml.go build tables from them when the handler
// is created. An [action] is independent of the protocol and implemented once.
//
// Actions validate a single request: required parameters, numeric ranges, batch rules, attribute value fields. The
// broker validates messages and queues, so that the rules are the same for all its callers.
//
// An error's code is the name of its shape in the JSON protocol. errors.go maps it to the Query code, which JSON
// replies carry in x-amzn-query-error, the status, and a fixed text if clients match on one.
//
// ReceiveMessage responses (receive.go), successful sends and deletes (json.go) have hand-written encoders, and
// requests are read by sqswire's reader, for speed and a smaller stack. Tests compare both with encoding/json. A
// waiting long poll keeps its stack, so a test ensures that the calls from [Handler.ServeHTTP] to the broker's wait
// fit into 4 KiB.
//
// # Access control
//
// With [Options.Keys], every request must be signed by a key pair with the necessary rights (package access). Without
// keys, every client may use the queues, and the registry requires its token; the server should then listen only on
// loopback addresses and Unix sockets.
//
// The guard protects against web pages in a browser on this machine, which can reach loopback addresses. Their
// requests carry Origin, Referer or Sec-* headers, which SDKs do not send; DNS rebinding shows in the Host header.
// Both get status 403, and replies never carry CORS headers. Since browsers send forms, valid Query requests, without
// a preflight, Accept-Language is refused there too.
//
// # Invariants
//
//   - SendMessage succeeds only after the message is durable.
//   - Input is stored byte for byte or refused: invalid UTF-8 and unpaired surrogates are not replaced.
//   - The limits in decode.go bound the memory of a request before parsing.
//   - Replies have a request ID. Error replies and [Events] contain no message bodies.
//
// # Failures
//
// A client that disconnects ends its long poll. If a reply cannot be written, its messages become visible again after
// their visibility timeout, as in SQS. [Handler.Stop] ends all long polls with empty replies for a fast shutdown. A
// full disk is status 507; a closing or recovering store is 503, which SDKs retry. The cause of an unexpected error
// (500) goes to
// [Events], not to the client.
//
// # Limitations
//
// There are no rate limits, no encryption at rest and no TLS, which is left to the server.
//
// # Size
//
// The package has more than 4,000 lines because it implements every action for two protocols.
package sqsapi
