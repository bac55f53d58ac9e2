// Package httplimit limits the connections, requests and memory that clients of an HTTP server can occupy.
//
// Any client that reaches a listener can open connections and send endless bodies. [Listen] limits both:
//
//	Connections  the longest idle connection is closed for a new one
//	Bodies       a body waits for memory, and is rejected with queue.CodeRequestThrottled if that takes too long, or if
//	             it arrives slowly while others wait
//	Anonymous    requests without valid credentials have no body, and occupy an eighth of the connections
//	Probe        other requests occupy three quarters of the connections
//
// A connection with a request in progress is never closed for a new one, and a closed connection does not start
// another request. Idle clients never keep out a probe or a producer. Other slow requests are left to the
// server's own timeouts.
//
// A request from which proxies may read different lengths is rejected, and its connection closed, so that no client can
// hide a request in the body of another.
package httplimit
