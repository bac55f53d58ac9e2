package runtimeapi

import (
	"context"
	"net"
	"net/http"
)

type caller struct {
	conn net.Conn
	// own means that the caller is the process or one of its children. It is valid once checked is set.
	checked, own bool
}

type callerKey struct{}

func withCaller(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, callerKey{}, &caller{conn: conn})
}

// sentBy waits for the process to start, and reports whether it or one of its children sent the request.
func (inst *instance) sentBy(r *http.Request) bool {
	c, ok := r.Context().Value(callerKey{}).(*caller)
	if !ok {
		return false
	}
	if c.checked {
		return c.own
	}

	select {
	case <-inst.announced:
	case <-inst.gone:
	}
	c.checked = true
	proc := inst.process()
	if proc == nil {
		return false
	}
	c.own = proc.Owns(c.conn)
	if !c.own {
		inst.pool.refusals.add(inst.number, c.conn, inst.pool.host.client, inst.pool.set.Events.Refused)
	}
	return c.own
}
