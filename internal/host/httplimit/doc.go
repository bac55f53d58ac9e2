// Package httplimit limits the connections, requests and memory that clients of an HTTP server can occupy.
//
//	Connections  the longest idle connection is closed for a new one
//	Bodies       a body waits for memory, and is rejected with queue.CodeRequestThrottled if that takes too long, or if
//	             it arrives slowly while others wait
//	Anonymous    requests without valid credentials have no body, and occupy at most an eighth of the connections
//	Probe        other requests occupy at most three quarters of the connections
//
// A connection with a request in progress is never closed for a new one. Requests whose length a proxy may read
// differently are rejected, to prevent request smuggling.
package httplimit
