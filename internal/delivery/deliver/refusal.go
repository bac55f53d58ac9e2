package deliver

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"time"
)

// A TLS 1.3 client completes its handshake before the server has checked its certificate. A refusal arrives as an
// alert in place of a response.

const refusedReason = "TLS certificate refused by the target"

const refusalWait = 250 * time.Millisecond

// refusals are the alerts about a client certificate, by their numbers in RFC 8446: bad, unsupported, revoked,
// expired and unknown certificate, unknown authority, access denied, certificate required.
var refusals = []tls.AlertError{42, 43, 44, 45, 46, 48, 49, 116}

// isRefusal reports whether the peer refused our certificate. A request answered by such an alert was not read:
// servers pass no data to the app before accepting the certificate.
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
