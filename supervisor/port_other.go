//go:build !linux

package supervisor

import (
	"context"
	"time"
)

// wildcardTaken connects: where it is not Linux, 127.0.0.1 may be bound while
// somebody listens on all addresses.
func wildcardTaken(port int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := Check{Port: port}.dial(ctx)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// portHolder is known on Linux only.
func portHolder(int) string { return "" }
