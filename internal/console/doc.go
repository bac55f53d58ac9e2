// Package console serves the JSON API that inspects and controls a running environment.
//
// [Server] handles HTTP using the routes and types of package api. The service behind it also checks the permissions of
// the pages of package web, which call it in process.
//
//	tendril send, peek, queues, dead, tasks, deploy, status, health, drain, reload
//	        |  api.Dial(data directory): address from instance.json, token from console.token
//	        v
//	     api.Client ── HTTP, loopback ──> Server ─────┐ Host, cross-origin, caller
//	                                                  v
//	                                               service.answer ──┬─> broker      queues, messages, ledger
//	     pages (web) ── api.Client ── inProcess ──────^  scope,     ├─> Deliveries  outcomes, problems
//	       ^                                             Audit      └─> func fields: status, health, deploy, drain …
//	       └── browser, cookie ──> Server
//
// Guarantees:
//
//   - Browsing messages does not change them or their receive counts.
//   - Changing something, or reading message bodies, requires a scope. The owner's token has all scopes. Health and
//     counts are public, but text from an app, hook or other server needs the scope read.
//   - Other instances of the environment may only read the routes that describe one instance, after both sides have
//     proved that they have the fleet key. A request with the ID of another instance is forwarded to it.
//   - Every action, even if refused, and every read of message bodies is audited.
//   - Requests with a foreign Host, or sent by a browser for another site's page, are refused first, because listening
//     on loopback does not prevent them.
//   - No request waits longer than 25 s, except deployments, drain hooks and streams (at most 64). [Server.Close] ends
//     all waits, so the console never delays shutdown.
//   - Irreversible actions require confirmation: a purge the queue's name, deleting several messages their number.
//   - Actions on all matching messages run as tasks of the queue. They and deployments continue without the caller.
//
// Without a broker (on Amazon SQS), the queue routes return 409. Without a token in [Options], protected routes return
// 401.
package console
