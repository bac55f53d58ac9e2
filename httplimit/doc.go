// Package httplimit bounds the connections of an HTTP server and the request bodies it holds at once.
//
// Whoever reaches a listener can open connections and send bodies that never end. [Listen]
// bounds the connections of a server: the one that was idle for longest is closed for a new
// one, so that idle clients never keep out a probe or a producer. [Bodies] bounds the bytes
// of large bodies: what does not fit waits, and is refused with queue.CodeRequestThrottled
// when that takes too long. Small bodies pass unasked.
//
// What it does not do: a request that is being read or answered is never cut off for a new
// one. The time limits of the server end it.
package httplimit
