package httplimit

import (
	"net/http"
	"time"
)

// discardTime is how long the body of an anonymous request, which nothing reads, is still received after the answer.
// Clients that send all of it before they read get to see the answer.
const discardTime = time.Second

// ServeHTTP answers one request. A connection that was given up has lost its client: its request is not carried out,
// since the client sends it again.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok && c.givenUp.Load() {
		panic(http.ErrAbortHandler)
	}
	if l.waiting.Load() {
		w.Header().Set("Connection", "close")
	}
	if l.limits.Anonymous != nil && l.limits.Anonymous(r) {
		l.serveAnonymous(w, r)
		return
	}
	l.requests.ServeHTTP(w, r)
}

// serveAnonymous answers a request without valid credentials. It has no body, it is the last of its connection, and
// the connections that such requests occupy at once are few: the others are for probes and for callers who are known.
func (l *listener) serveAnonymous(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	rc := http.NewResponseController(w)
	defer func() { _ = rc.SetReadDeadline(time.Now().Add(discardTime)) }()
	if l.limits.Probe == nil || !l.limits.Probe(r) {
		defer l.anonymous.Add(-1)
		if l.anonymous.Add(1) > int64(max(l.limits.Connections/8, 2)) {
			w.Header().Set("Retry-After", "10")
			http.Error(w, "too many requests without valid credentials at once; send credentials, or try again",
				http.StatusServiceUnavailable)
			return
		}
		defer func() { _ = rc.Flush() }() // a client that does not read occupies its connection within the bound
	}

	bodiless := r.WithContext(r.Context()) // the server discards the body of r itself
	bodiless.Body, bodiless.ContentLength = http.NoBody, 0
	l.requests.ServeHTTP(w, bodiless)
}
