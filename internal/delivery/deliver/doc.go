// Package deliver hands one message, or one batch, to an app over HTTP or to a Lambda function.
//
// [Client] is the deliverer for an app: one [Client.Deliver] is one message, at most
// one POST, and one [queue.Result]. [Client.DeliverBatch] posts several messages at once, in
// the form that functions get them (batch.go). [Lambda] is the one for a function; the last
// part of this page is about it.
//
//	message                                                     result
//	   |                                                           ^
//	   v                                                           |
//	client.go    is it a task's run? --bad path--> Failed          |
//	   |                                                           |
//	   v                                                           |
//	header.go    the request's head, its trace and its signature   |
//	   |                                                           |
//	   v                                                           |
//	transport.go a connection  --none--> Unreached                 |
//	   |              ^                                            |
//	   |          dial.go, target.go                               |
//	   v                                                           |
//	conn.go      write the request, once                           |
//	   |                                                           |
//	   v                                                           |
//	answer.go    read the answer --------------------------> outcome.go
//
// The client knows messages, the transport connections: another one may take its place.
//
// # Why an exchange of its own
//
// The request is written and the answer awaited here, over a net.Conn; the parsing of
// answers is net/http's. Its Transport is made for requests that may be repeated, and a
// delivery may not:
//
//   - It sends a request again by itself under some circumstances. Here there is
//     no second try once a byte of the request was handed to the kernel.
//   - It reads ahead: bytes that an app sends unasked can become the answer to the
//     next request. Here such a connection is closed.
//   - It cannot tell how much of a request went out, nor move a deadline with each
//     byte that comes in, and takes two more goroutines and half as much CPU time again.
//
// # What holds
//
//   - Done only after the whole success answer to this very request: status line,
//     headers, and the announced body, up to 64 KiB of it.
//   - Unreached only if no byte of the request left, or the target refused our certificate
//     before it read one. It then says nothing about the message, and nothing was lost by trying.
//   - Failed for all in between, also where the app may have done the work.
//   - What the app says by Tendril-Outcome goes before its status (steer.go), and cannot make more of an answer that
//     broke off.
//   - Nothing but the configured target is dialled. A message chooses at most a path
//     on it, by the rule of [queue.ParsePath]; redirects are not followed; no proxy is
//     asked; link-local and metadata addresses are refused when the name has
//     become an address.
//   - A connection carries a further request only if the one before was written
//     whole, its answer read whole, and nothing came after. Before its use it is
//     checked for having been closed meanwhile.
//   - An attribute arrives as it was sent or is left out and counted in
//     X-Aws-Sqsd-Attr-Dropped, blanks around its value apart. None can stop a
//     delivery, replace one of the daemon's headers, or add one. The headers of a
//     trace are those that [Options].Trace returns.
//
// # The timeouts
//
// ConnectTimeout bounds a connect. From then on the app must give a sign of life
// every InactivityTimeout: a byte of an answer, be it an informational one, or a
// part of a long message taken. Deadline, when set, bounds it all. The context of
// a Deliver ends it at any point. The app may choose its InactivityTimeout for one
// delivery, by Tendril-Outcome: extend.
//
// # What it does not do
//
// It does not delete messages, repeat them, or wait before the next attempt: the
// worker does, by the result. It does not start the app, follow its health, or
// read what it answers beyond the status, Location, Retry-After and Tendril-Outcome. It speaks
// HTTP/1.1 only, as the receivers do, and asks for no compression.
//
// # Functions
//
// [Lambda.DeliverBatch] hands messages to a function as Lambda's event source mapping
// for SQS does, through an [Invoker] that makes the calls.
//
//	messages                                                    results
//	   |                                                           ^
//	   v                                                           |
//	lambda.go          as many as an event has room for  -- one too large: Failed
//	   |                                                           |
//	   v                                                           |
//	lambda_event.go    {"Records":[...]}                           |
//	   |                                                           |
//	Invoker            once ----------> lambda_outcome.go: it was not run, it failed
//	                     |                                         |
//	                     +--> lambda_reply.go: it returned: which are done
//
// What holds:
//
//   - A message is Done only if the function that had it in its event returned, and
//     said in no way that the message failed. A reply that may be meant to say so, but
//     does not say it properly, fails the whole event.
//   - No message is in two events that may have run.
//   - Throttled and Unreached only if the function has surely not run: the service
//     refused, or nothing left. When a whole event is refused so, the rest of the batch
//     is not sent either.
//   - On a FIFO queue nothing of a group is Done, and nothing more of it is sent in
//     further events, behind a message of it that is not done.
//   - No reason holds a part of a message, of a reply, or of the text of an error: only
//     names of errors that look like names.
//
// It has no time limit of its own: the Invoker has.
package deliver
