package deliver

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"time"
)

// With TLS 1.3, a server checks the client's certificate after the handshake. A refusal is an alert in place of a
// response.

const refusedReason = "TLS certificate refused by the target"

const refusalWait = 250 * time.Millisecond

// refusals are alerts about client certificates in RFC 8446: bad, unsupported, revoked, expired and unknown
// certificate, unknown authority, access denied, certificate required.
var refusals = []tls.AlertError{42, 43, 44, 45, 46, 48, 49, 116}

// isRefusal reports whether the peer refused our certificate. Servers read no request before accepting it.
func isRefusal(err error) bool {
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Op == "remote error" &&
		slices.ContainsFunc(refusals, func(a tls.AlertError) bool { return a.Error() == remote.Err.Error() })
}

// awaitRefusal returns the refusal of a new connection, or nil.
func awaitRefusal(c *tls.Conn) error {
	if c.ConnectionState().Version < tls.VersionTLS13 {
		return nil
	}
	c.SetReadDeadline(time.Now().Add(refusalWait))
	if _, err := c.Read(make([]byte, 1)); isRefusal(err) {
		return err
	}
	return nil
}
