package httplimit

import (
	"net/http"
	"time"
)

// Unread data is discarded for discardTime, because some clients send the whole body before they read the rejection.
const discardTime = time.Second

// ServeHTTP drops requests on connections that were given up; clients resend them.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connectionKey{}).(*connection)
	if c.givenUp.Load() {
		panic(http.ErrAbortHandler)
	}
	if l.waiting.Load() || len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close")
	}
	c.served++
	if c.framing.isAmbiguous(c.served, r) {
		w.Header().Set("Connection", "close")
		http.Error(w, "a request must not have both Content-Length and Transfer-Encoding, Transfer-Encoding in HTTP/1.0, "+
			"or header lines that start with a blank", http.StatusBadRequest)
		return
	}

	r.TLS = c.state
	if l.limits.Probe != nil && !l.limits.Probe(r) {
		defer l.inProgress.Add(-1)
		if l.inProgress.Add(1) > int64(max(l.limits.Connections*3/4, 2)) {
			refuse(w, "too many requests at once; try again")
			return
		}
	}
	if l.limits.Anonymous != nil && l.limits.Anonymous(r) {
		l.serveAnonymous(w, r)
		return
	}
	l.requests.ServeHTTP(w, r)
}

func refuse(w http.ResponseWriter, why string) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Retry-After", "10")
	http.Error(w, why, http.StatusServiceUnavailable)
}

// serveAnonymous limits requests without valid credentials, and passes them to the handler without their bodies.
func (l *listener) serveAnonymous(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	rc := http.NewResponseController(w)
	defer func() { _ = rc.SetReadDeadline(time.Now().Add(discardTime)) }()
	if l.limits.Probe == nil || !l.limits.Probe(r) {
		defer l.anonymous.Add(-1)
		if l.anonymous.Add(1) > int64(max(l.limits.Connections/8, 2)) {
			refuse(w, "too many requests without valid credentials at once; send credentials, or try again")
			return
		}
		defer func() { _ = rc.Flush() }() // counts until the client has read the response
	}

	bodiless := r.WithContext(r.Context()) // the server discards the original request's body
	bodiless.Body, bodiless.ContentLength = http.NoBody, 0
	l.requests.ServeHTTP(w, bodiless)
}
