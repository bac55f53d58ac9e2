package deliver

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"time"
)

// With TLS 1.3, a server checks the client certificate after the client has completed the handshake, and refuses it
// with an alert instead of a response.

const refusedReason = "TLS certificate refused by the target"

const refusalWait = 250 * time.Millisecond

// RFC 8446: bad, unsupported, revoked, expired or unknown certificate, unknown CA, access denied, certificate
// required.
var refusals = []tls.AlertError{42, 43, 44, 45, 46, 48, 49, 116}

// isRefusal reports whether the target refused the client certificate. It has then not read the request.
func isRefusal(err error) bool {
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Op == "remote error" &&
		slices.ContainsFunc(refusals, func(a tls.AlertError) bool { return a.Error() == remote.Err.Error() })
}

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
