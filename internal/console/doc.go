// Package console serves the JSON API that inspects and controls a running environment.
//
// [Server] handles HTTP using the routes and types of package api. The pages of package web call its service in
// process.
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
//   - Health, counts and outcomes are public. Changes, message bodies, settings, events, logs, and text from the app,
//     hooks or other servers require a scope.
//   - Actions and reads of message bodies are audited; see [Access] for the exceptions.
//   - Other instances can only read routes that describe one instance, after both sides have proved that they have the
//     fleet key.
//   - Requests for a foreign host, or from another site's page (except followed links), are refused first.
//   - No request waits longer than 25 s, except deployments, reloads, restarts of processes, drain hooks and streams
//     (at most 64). [Server.Close] ends all waits.
//   - Irreversible actions require confirmation: the queue's name for a purge or the queue's deletion, the number for
//     deleting several messages.
//   - Deployments, reloads, restarts, changes of settings, and actions on all matching messages continue if the caller
//     disconnects.
package console
