package runtimeapi

import (
	"context"
	"net"
	"net/http"
)

// caller is the program at the other end of a connection. Its requests come one after
// the other.
type caller struct {
	conn net.Conn
	// checked: it was found out whether it belongs to the process, which is own.
	checked, own bool
}

type callerKey struct{}

// withCaller adds the caller to the context of a connection's requests.
func withCaller(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, callerKey{}, &caller{conn: conn})
}

// started reports whether a request comes from the process or from what that started.
// It waits until the process is known to all that would end it. A connection is checked
// once: it stays with the program that made it.
func (inst *instance) started(r *http.Request) bool {
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
	if proc := inst.running(); proc != nil {
		if c.own = proc.owns(c.conn); !c.own {
			inst.pool.noteRefused(inst.number, c.conn)
		}
	}
	return c.own
}

// running returns the process while it is alive.
func (inst *instance) running() process {
	inst.pool.mu.Lock()
	defer inst.pool.mu.Unlock()
	return inst.proc
}

// noteRefused counts a connection that was refused. It tells of the first, and then
// each time that there are ten times as many.
func (p *Pool) noteRefused(instance int, conn net.Conn) {
	if _, due := p.refusedBy(1, false); !due {
		return
	}
	client := p.host.client(conn)
	if client == "" {
		return // it is gone
	}
	if total, due := p.refusedBy(0, true); due {
		p.set.Events.Refused(Refused{Instance: instance, Client: client, Total: total})
	}
}

// refusedBy adds n connections to those that were refused, and returns how many there
// are and whether it is time to tell of them. With tell it no longer is.
func (p *Pool) refusedBy(n int, tell bool) (total int, due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused += n
	due = p.refused >= p.refusedNext && p.set.Events.Refused != nil
	if due && tell {
		p.refusedNext *= 10
	}
	return p.refused, due
}
