package api

// SessionKeyHeader carries the key of a session beside its cookie. Browsers send the cookie to every port of the host,
// so that what listens there gets it; the key they keep for one port, and it is asked for by every act.
const SessionKeyHeader = "X-Tendril-Session-Key"

// CodeSessionKey is the [Error].Code of an act of a session without its key.
const CodeSessionKey = "SessionKeyRequired"

type (
	// LoginRequest is the body of the request for a link to sign in with.
	LoginRequest struct {
		// Scopes are of the Scope constants; none stands for all.
		Scopes []string `json:"scopes,omitempty"`
	}
	// LoginLink is the link to sign in with.
	LoginLink struct {
		Path string `json:"path"`
	}
)
