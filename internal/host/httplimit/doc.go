// Package httplimit bounds what the clients of an HTTP server can occupy: connections, requests and memory.
//
// Every client that reaches a listener can open connections and send bodies that never end. [Listen] bounds both, for
// every server of this program:
//
//	Connections  the one that was idle for longest is closed for a new one
//	Bodies       a body that does not fit waits, and is refused with queue.CodeRequestThrottled if that takes too long
//	Anonymous    requests without valid credentials have no body, and occupy an eighth of the connections
//
// A request is either carried out and answered, or not carried out: its connection is never closed for a new one while
// it is being answered, and a connection that was closed does not begin another request. Idle clients never keep out a
// probe or a producer.
//
// What it does not do: end a request that takes long. The time limits of the server do that.
package httplimit
