package console

import (
	"context"
	"crypto/rand"
	"net/http"
)

// RequestIDHeader is the header of every answer with the id of its request. Lines of the log about the request, and a
// refusal, have the same id.
const RequestIDHeader = "X-Request-Id"

type requestIDKey struct{}

// withID gives a request an id. The requests that a page makes for one have the id of that one.
func withID(w http.ResponseWriter, r *http.Request) *http.Request {
	if requestID(r) == "" {
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, rand.Text()[:12]))
	}
	w.Header().Set(RequestIDHeader, requestID(r))
	return r
}

func requestID(r *http.Request) string {
	id, _ := r.Context().Value(requestIDKey{}).(string)
	return id
}

// identified is the refusal of a request, with its id.
func (e *Error) identified(r *http.Request) *Error {
	shown := *e
	shown.RequestID = requestID(r)
	return &shown
}
