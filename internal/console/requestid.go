package console

import (
	"context"
	"crypto/rand"
	"net/http"

	"tendril/api"
)

type requestIDKey struct{}

// API calls made while rendering a page share the page's ID.
func withID(w http.ResponseWriter, r *http.Request) *http.Request {
	if requestID(r) == "" {
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, rand.Text()[:12]))
	}
	w.Header().Set(api.RequestIDHeader, requestID(r))
	return r
}

func requestID(r *http.Request) string {
	id, _ := r.Context().Value(requestIDKey{}).(string)
	return id
}
