package deliver

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"time"
)

// With TLS 1.3 a client is through with its handshake before the server has looked at its certificate. A refusal is
// then an alert in the place of an answer.

// refusedReason says that the target refused the connection at the end of the handshake.
const refusedReason = "TLS certificate refused by the target"

// refusalWait is how long a probe waits for a refusal.
const refusalWait = 250 * time.Millisecond

// refusals are the alerts about a client's certificate, by their numbers in RFC 8446: bad, unsupported, revoked,
// expired and unknown certificate, unknown authority, access denied, certificate required.
var refusals = []tls.AlertError{42, 43, 44, 45, 46, 48, 49, 116}

// isRefusal reports whether an error is the other end's refusal of the certificate. A request that it answers was never
// read: no server gives data to an app before it has accepted the certificate.
func isRefusal(err error) bool {
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Op == "remote error" &&
		slices.ContainsFunc(refusals, func(a tls.AlertError) bool { return a.Error() == remote.Err.Error() })
}

// awaitRefusal returns the refusal of a new connection, nil for none.
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
