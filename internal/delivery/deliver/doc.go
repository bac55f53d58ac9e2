// Package deliver sends messages to an app over HTTP or to a Lambda function.
//
// [Client] delivers to an app: one [Client.Deliver] makes at most one POST and returns one [queue.Result].
// [Client.DeliverBatch] posts several messages in one request, in the format for functions (batch.go). [Lambda]
// delivers to a function, see below.
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
//	answer.go    read the response ------------------------> outcome.go
//
// The client handles messages, the transport handles connections and can be replaced.
//
// # Why not http.Transport
//
// This package writes requests and waits for responses on a net.Conn itself, and uses net/http only to parse
// responses. http.Transport is made for requests that may be repeated; deliveries may not:
//
//   - It resends a request in some cases. Here, nothing is sent again once a byte was passed to the kernel.
//   - It reads ahead, so unsolicited bytes can become the response to the next request. Here they close the connection.
//   - It does not report how much of a request was written and cannot extend a deadline with each byte received. It also
//     needs two more goroutines and half as much CPU time again.
//
// # Guarantees
//
//   - Done requires a whole success response to this request: status line, headers and body, up to 64 KiB.
//   - Unreached means that no byte of the request was sent, or that the target refused our certificate before reading
//     it. It reveals nothing about the message and costs nothing.
//   - Failed is everything in between, even if the app may have done the work.
//   - Tendril-Outcome takes precedence over the status (steer.go), but does not apply to incomplete responses.
//   - Only the configured target is dialled. A message chooses at most a path on it, see [queue.ParsePath]. Redirects and
//     proxies are not used. Link-local and metadata addresses are refused after the name was resolved.
//   - A connection is reused only if the previous request was fully written, its response fully read, and nothing
//     followed. It is also checked for having been closed.
//   - An attribute is delivered unchanged, apart from surrounding blanks, or dropped and counted in
//     X-Aws-Sqsd-Attr-Dropped. Attributes cannot stop a delivery or replace headers of the daemon. Trace headers are
//     exactly those returned by [Options].Trace.
//
// # Timeouts
//
// ConnectTimeout limits connecting. After that, the app must show activity every InactivityTimeout: a byte of a
// response, even an informational one, or a part of a long message accepted. Tendril-Outcome: extend changes that
// timeout for one delivery. Deadline, if set, limits the whole delivery, and the context of Deliver can end it at any
// time.
//
// # Out of scope
//
// The worker deletes and retries messages based on the result. This package does not start or monitor the app. It
// reads only the status, Location, Retry-After, Tendril-Outcome and the start of failed responses, speaks only
// HTTP/1.1, and requests no compression.
//
// # Functions
//
// [Lambda.DeliverBatch] delivers messages like Lambda's event source mapping for SQS, through an [Invoker] that makes
// the calls.
//
//	messages                                                    results
//	   |                                                           ^
//	   v                                                           |
//	lambda.go          as many messages as fit      -- too large: Failed
//	   |                                                           |
//	   v                                                           |
//	lambda_event.go    {"Records":[...]}                           |
//	   |                                                           |
//	Invoker            once ----------> lambda_outcome.go: it did not run, or failed
//	                     |                                         |
//	                     +--> lambda_reply.go: it returned, with failed messages
//
// Guarantees:
//
//   - A message is Done only if the function returned and did not report it as failed. An unclear report fails the whole
//     event.
//   - A message is never in two events that may have run.
//   - Throttled and Unreached mean that the function certainly did not run: the service refused, or nothing was sent. The
//     rest of the batch is then not sent.
//   - On a FIFO queue, a message that is not done prevents later messages of its group from being Done or sent.
//   - Reasons contain no part of a message, reply or error text, only error names that look like names.
//
// Time limits are up to the Invoker.
package deliver
