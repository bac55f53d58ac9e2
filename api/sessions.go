package api

// SessionKeyHeader carries a session's key, which every action requires in addition to the cookie: browsers send
// cookies to every port of a host, where other servers can read them, but store keys per port.
const SessionKeyHeader = "X-Tendril-Session-Key"

// CodeSessionKey is the [Error].Code if a session requests an action without its key.
const CodeSessionKey = "SessionKeyRequired"

type (
	// LoginRequest is the request for a login link.
	LoginRequest struct {
		// Scopes may be empty, which means all.
		Scopes []string `json:"scopes,omitempty"`
	}
	// LoginLink is the answer to a [LoginRequest].
	LoginLink struct {
		Path string `json:"path"`
	}
)
