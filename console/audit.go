package console

import (
	"cmp"
	"net/http"
	"sync"
	"time"
)

// Act is something that a caller did or tried to do.
type Act struct {
	At time.Time
	// Who is the caller as in [Caller], Remote its address.
	Who, Remote string
	// Method and Path are those of the request.
	Method, Path string
	// Subject is the queue, task or message that it was about; "" for the environment.
	Subject string
	// Count is how many messages it sent, moved or removed.
	Count int
	// Status is the HTTP status of the answer, Refused why it is not a success; "" when it is.
	Status  int
	Refused string
}

// counted is an answer that says how many messages an act touched.
type counted interface{ touched() int }

func (c count) touched() (n int) {
	for _, of := range c {
		n += of
	}
	return n
}

func (a sendAnswer) touched() (n int) {
	for _, r := range a.Results {
		if r.Error == "" {
			n++
		}
	}
	return n
}

// maxRefused is how many refused acts are recorded in a minute. Whoever reaches the listener can cause them, and
// must not push everything else out of a log.
const maxRefused = 60

// auditor records acts.
type auditor struct {
	mu      sync.Mutex
	minute  time.Time
	refused int
}

// admits reports whether another refused act may be recorded now.
func (a *auditor) admits(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.minute) >= time.Minute {
		a.minute, a.refused = now, 0
	}
	a.refused++
	return a.refused <= maxRefused
}

// record logs an act and tells [Access].Audit. The answer is what the handler returned.
func (s *Server) record(r *http.Request, status int, refusal *Error, body any) {
	act := Act{At: time.Now(), Who: callerOf(r).who, Remote: r.RemoteAddr, Method: r.Method, Path: r.URL.Path,
		Subject: cmp.Or(r.PathValue("id"), r.PathValue("name")), Status: status}
	if refusal != nil {
		act.Refused = refusal.Message
		if status < http.StatusInternalServerError && !s.auditor.admits(act.At) {
			return
		}
	}
	if c, ok := body.(counted); ok {
		act.Count = c.touched()
	}
	attrs := []any{"method", act.Method, "path", act.Path, "who", act.Who, "remote", act.Remote, "status", act.Status}
	if act.Count > 0 {
		attrs = append(attrs, "messages", act.Count)
	}
	if act.Refused == "" {
		s.log.Info("console act", attrs...)
	} else {
		s.log.Warn("console act refused", append(attrs, "reason", act.Refused)...)
	}
	if s.opts.Audit != nil {
		s.opts.Audit(act)
	}
}
