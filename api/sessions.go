package api

// SessionKeyHeader carries a session's key, which actions require besides the cookie: browsers send cookies to all
// ports of a host, but store the key per port.
const SessionKeyHeader = "X-Tendril-Session-Key"

// CodeSessionKey is the [Error].Code of a session's action without its key.
const CodeSessionKey = "SessionKeyRequired"

type (
	// LoginRequest is the request for a login link.
	LoginRequest struct {
		// Scopes may be empty, which means all.
		Scopes []string `json:"scopes,omitempty"`
	}
	// LoginLink is the response to a [LoginRequest].
	LoginLink struct {
		Path string `json:"path"`
	}
)
