//go:build !unix

package deliver

import "net"

// peeker would look whether a connection that should be silent is. Here a kept
// connection is taken at its word, and the short time it is kept must do.
type peeker struct{}

func newPeeker(net.Conn) *peeker { return nil }

func (*peeker) quiet() bool { return true }
