// Package deliver sends messages to an app over HTTP or to a Lambda function.
//
// [Client] delivers to an app:
//
//	message                                                     result
//	   |                                                           ^
//	   v                                                           |
//	client.go    scheduled run?  ------invalid path--> Failed      |
//	   |                                                           |
//	   v                                                           |
//	header.go    request head, trace and signature                 |
//	   |                                                           |
//	   v                                                           |
//	transport.go connection  --none--> Unreached                   |
//	   |              ^                                            |
//	   |          dial.go, target.go                               |
//	   v                                                           |
//	conn.go      write the request, once                           |
//	   |                                                           |
//	   v                                                           |
//	response.go  read the response ------------------------> outcome.go
//
// http.Transport is unsuitable: it may resend a request; it reads ahead, so unsolicited bytes can become the next
// response; it reports neither progress nor how much of a request was written; and it needs 50 % more CPU time.
// net/http only parses responses.
//
// # Guarantees
//
//   - Done requires a success response to this request whose body is complete or, for a single message, longer than
//     64 KiB, or "Tendril-Outcome: drop".
//   - Unreached means that no byte was sent, or that the target refused the client certificate. Postponed means that
//     deliveries were paused. Everything else is Failed, even if the app may have processed the message.
//   - Tendril-Outcome takes precedence over the status of a complete response (steer.go).
//   - The client connects only to the configured target, without redirects or proxies. A message can choose only the
//     path, see [queue.ParsePath]. Link-local, multicast and metadata addresses are rejected after name resolution.
//   - A connection is reused only if the previous exchange was complete and no extra bytes followed.
//   - A text attribute is delivered unchanged, trimmed or dropped; X-Aws-Sqsd-Attr-Dropped counts the last two. It
//     cannot stop a delivery or replace another header.
//
// # Functions
//
// [Lambda] delivers to a function through an [Invoker], like Lambda's event source mapping for SQS.
//
//		messages                                                    results
//		   |                                                           ^
//		   v                                                           |
//		lambda.go          as many messages as fit      -- too large: Failed
//		   |                                                           |
//		   v                                                           |
//		lambda_event.go    {"Records":[...]}                           |
//		   |                                                           |
//		Invoker            once ----------> lambda_outcome.go: it did not run, or failed
//		                     |                                         |
//		                     +--> lambda_reply.go: it returned, with failed messages
//
//	  - A message is Done only if the function returned and did not report it as failed. An unclear report fails the whole
//	    event. No message is in two events that may have run.
//	  - Throttled and Unreached mean that the function did not run. The rest of the batch is then not sent.
//	  - Reasons contain no part of a message, reply or error text.
package deliver
