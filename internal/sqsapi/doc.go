// Package sqsapi serves a broker over the SQS wire protocol.
//
// An AWS SDK, told by AWS_ENDPOINT_URL_SQS where to call, works on a
// [Handler] as it works on Amazon SQS: the same actions, parameters, limits,
// digests, error codes and texts. It speaks both protocols: AWS JSON 1.0, which
// the SDKs use since November 2023, and the older Query protocol, whose requests
// are forms or query strings and whose replies are XML.
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
//	replyForm    response, or error with the name and text of the protocol
//
// # One description of an action
//
// The types of an action's request and response describe it for both protocols.
// JSON takes the names of the json tags. Query has other names for lists and
// maps, which the tags query give; parameters.go and xml.go make tables of them
// once, when the handler is made. Both decoders fill a request by the same table. An [action] knows nothing of the protocol that
// carried it, and there is one implementation of each.
//
// An action checks what can be seen in one request: required parameters, ranges
// of numbers, the rules of batches, which field holds an attribute's value. The
// broker checks what a message or a queue may be, so that every way into it has
// the same rules.
//
// An error has a code, the name of its shape in the JSON protocol. The table
// in errors.go gives the other things that the wire needs: the code of the
// Query protocol, which JSON replies carry in x-amzn-query-error and which
// botocore reports, the status, and a fixed text where clients match on one.
//
// The encoders of ReceiveMessage's response (receive.go) and of successful sends and deletes (json.go) are
// written by hand, since these are most of the traffic. Requests are read by the reader of package sqswire,
// which needs a smaller stack and less time than a general decoder. Tests compare both with encoding/json.
//
// A long poll keeps its stack while it waits. The calls from [Handler.ServeHTTP] to the broker's wait fit into
// 4 KiB, with their frames kept small for that; a test holds it.
//
// # Who may call
//
// With [Options.Keys] every request must be signed by a key pair that may do
// what it asks (package access). Without, whoever can connect may do
// everything with the queues, and the registry asks for its token; then the
// server is to listen on loopback addresses and unix sockets only. Every
// request passes a guard first, because loopback keeps other machines away but
// not the web pages that are open on this one. A page can send a form or an
// image request to any port of this machine; it shows in the headers Origin,
// Referer and Sec-*, which no SDK sends. A page whose name was made to point
// at 127.0.0.1 shows in the Host header. Both get status 403, and no reply
// ever carries a CORS header. A form is a whole request of the Query protocol,
// for which a browser asks nobody: there Accept-Language is refused too.
//
// # Invariants
//
//   - A success of SendMessage is answered after the broker said that the
//     message is durable.
//   - What a client sent is stored byte for byte or refused: text that is not
//     UTF-8, or half a surrogate pair, is refused rather than replaced.
//   - Memory per request is bounded by the limits in decode.go before anything
//     is parsed.
//   - A reply has a request id, and neither replies nor [Events] hold message
//     bodies.
//
// # When things fail
//
// A client that leaves ends its own long poll; a reply that cannot be written
// is dropped, and messages in it come back after their visibility timeout, as
// on SQS. [Handler.Stop] ends all long polls with empty replies, so that a
// server can shut down at once. A full disk is answered with status
// 507, a store that is closing or recovering with 503, which SDKs try again.
// Anything unexpected is a 500 whose cause goes to [Events] and not to the
// client.
//
// # What it does not do
//
// It knows no rate limits, encrypts nothing at rest, and does not serve TLS: its
// server does.
//
// # Its size
//
// The package has more than 4,000 lines because it speaks two protocols for each action, with one description of an
// action for both.
package sqsapi
