// Package console shows and controls the environment over a JSON API.
//
// A running environment keeps one local listener for people and programs that operate it. [Server] answers
// there, by the routes and types of package api; the service behind it decides who may do what.
//
//	tendril send, peek, queues, dead, tasks, deploy, status, health, drain, reload
//	        |  api.Dial(data directory): instance.json says where, console.token lets in
//	        v
//	     api.Client ── HTTP, loopback ──> Server ─────┐ Host, cross-origin, caller
//	                                                  v
//	                                               service.answer ──┬─> broker      queues, messages, ledger
//	     pages (web) ── api.Client ── inProcess ──────^  scope,     ├─> Deliveries  outcomes, problems
//	       ^                                             Audit      └─> func fields: status, health, deploy, drain …
//	       └── browser, cookie ──> Server
//
// What holds:
//
//   - Looking at messages counts no receive and changes nothing.
//   - Pages call the service without HTTP, as the sender of their request: a page shows and does what a request by
//     the same caller would, and nothing else.
//   - Every route is a line of one table. A method and path that are not in it
//     are 404, whatever the path alone would have matched.
//   - A route that changes something, or that shows message bodies, asks for a caller with a scope: the
//     owner's token has all, a created token or the session of a browser those it was given. Health and
//     counts ask for nobody, but what an app, a hook or another server said is withheld without the scope read.
//   - An act, refused or not, and a read of message bodies is recorded with who and how many.
//   - Loopback alone does not protect: a request whose Host is not ours, or that another
//     site's page makes a browser send, is refused before anything is looked up.
//   - A refusal is JSON with the fields error, hint and code; the error
//     says what and where, the hint what to do instead.
//   - Nothing here waits for longer than 25 s, except a deployment, the
//     drain that a hook asks for, and streams of events and log lines, of which there
//     are 64 at most; and [Server.Close] ends every wait, so that the console
//     never holds up a stop.
//   - What cannot be undone asks for a word: a purge for the name of the queue, deleting several messages
//     for their number.
//   - An act on all messages that match is a task of the queue: it goes on without the one who asked.
//   - A deployment does not end with the request that asked for it.
//
// When something fails: without a broker (the environment works on Amazon SQS)
// the queue routes answer 409 and say where to look; without a token in
// [Options] every protected route stays shut. A client that finds no
// environment says so with an error that wraps [api.ErrNotRunning].
//
// What it does not do: it opens no listener, and keeps no history on disk: [Deliveries] is
// a bounded memory of the most recent ones, and package eventlog keeps the events.
package console
