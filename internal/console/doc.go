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
//   - Health and counts are public. Changes, message bodies, and text from an app, hook or other server require a scope.
//   - Every action, even if refused, and every read of message bodies is audited.
//   - Other instances can only read routes that describe one instance, after both sides have proved that they have the fleet key.
//   - Requests with a foreign Host, or from another site's page, are refused first.
//   - No request waits longer than 25 s, except deployments, drain hooks and streams (at most 64). [Server.Close] ends all waits.
//   - Irreversible actions require confirmation: a purge the queue's name, deleting several messages their number.
//   - Deployments, and actions on all matching messages, continue if the caller disconnects.
package console
