package api

// SessionKeyHeader carries a session's key beside its cookie. Browsers send cookies to every port of a host, so other
// servers there can read them; they store the key per port. Every action requires it.
const SessionKeyHeader = "X-Tendril-Session-Key"

// CodeSessionKey is the [Error].Code of a session's action without the key.
const CodeSessionKey = "SessionKeyRequired"

type (
	// LoginRequest is the request for a login link.
	LoginRequest struct {
		// Scopes holds Scope constants; empty means all.
		Scopes []string `json:"scopes,omitempty"`
	}
	// LoginLink is the answer of a [LoginRequest].
	LoginLink struct {
		Path string `json:"path"`
	}
)
