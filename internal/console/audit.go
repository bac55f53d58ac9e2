package console

import (
	"cmp"
	"net/http"
	"strings"
	"sync"
	"time"

	"tendril/api"
	"tendril/broker"
)

// Act is something that a caller did or tried to do.
type Act struct {
	At time.Time
	// Who is the caller as in [Caller], Remote its address.
	Who, Remote string
	// Method and Path are those of the request; Text says what it does, such as "queue paused", "" for what has no words.
	Method, Path, Text string
	// Subject is the queue, task or message that it was about; "" for the environment.
	Subject string
	// RequestID is that of the request.
	RequestID string
	// Count is how many messages it sent, moved or removed.
	Count int
	// Status is the HTTP status of the answer, Refused why it is not a success; "" when it is.
	Status  int
	Refused string
}

// touched is how many messages an act touched, by its answer.
func touched(answer any) (n int) {
	switch a := answer.(type) {
	case api.Count:
		for _, of := range a {
			n += of
		}
	case api.Message, api.Placed, api.Exchange:
		return 1
	case api.MessagePage:
		return len(a.Messages)
	case api.ReceivedList:
		return len(a.Messages)
	case api.SendAnswer:
		for _, r := range a.Results {
			if r.Error == "" {
				n++
			}
		}
	case api.Deleted:
		if a.Task != nil {
			return touched(*a.Task)
		}
		return a.Deleted
	case api.MoveTask:
		if a.Status == string(broker.MoveRunning) {
			return int(a.ToMove)
		}
		return int(a.Moved)
	}
	return n
}

// maxRefused is how many refused acts are recorded in a minute. Whoever reaches the listener can cause them, and
// must not push everything else out of a log.
const maxRefused = 60

// maxReads is how many different reads of a minute are remembered.
const maxReads = 1000

// auditor limits what is recorded.
type auditor struct {
	mu      sync.Mutex
	minute  time.Time // when this one began
	refused int
	read    map[string]bool // who read what
}

// admits reports whether another refused act may be recorded now.
func (a *auditor) admits(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn(now)
	a.refused++
	return a.refused <= maxRefused
}

// admitsRead reports whether a read may be recorded now: a page that is open reads the same again and again.
func (a *auditor) admitsRead(now time.Time, what string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn(now)
	if a.read[what] {
		return false
	}
	if len(a.read) < maxReads {
		a.read[what] = true
	}
	return true
}

// turn begins a minute when the last one is over; the caller holds the lock.
func (a *auditor) turn(now time.Time) {
	if now.Sub(a.minute) >= time.Minute {
		a.minute, a.refused, a.read = now, 0, map[string]bool{}
	}
}

// record logs an act and calls [Access].Audit. The answer is what the handler returned, a nil refusal for success.
func (s *service) record(c *call, refusal *api.Error, answer any) {
	act := newAct(c, answer)
	if refusal == nil {
		s.log.Info("console act", act.attributes()...)
	} else {
		act.Status = refusal.Status
		act.Refused = refusal.Message
		if act.Status < http.StatusInternalServerError && !s.auditor.admits(act.At) {
			return
		}
		s.log.Warn("console act refused", append(act.attributes(), "reason", act.Refused)...)
	}
	s.audit(act)
}

// recordRead logs who read message bodies, once in a minute for each page of them.
func (s *service) recordRead(c *call, answer any) {
	act := newAct(c, answer)
	if act.Count > 0 && s.auditor.admitsRead(act.At, act.Who+" "+act.Path+"?"+c.query.Encode()) {
		s.log.Info("message bodies read", act.attributes()...)
		s.audit(act)
	}
}

func (s *service) audit(act Act) {
	if s.opts.Access.Audit != nil {
		s.opts.Access.Audit(act)
	}
}

func newAct(c *call, answer any) Act {
	return Act{At: time.Now(), Who: c.caller.who, Remote: c.caller.remote, Method: c.method, Path: c.path,
		Text: c.route.act, Subject: cmp.Or(c.id, c.name), Status: statusOf(answer), RequestID: c.caller.requestID,
		Count: touched(answer)}
}

// attributes are those of a log line about the act.
func (a *Act) attributes() []any {
	attrs := []any{"method", a.Method, "path", a.Path, "who", a.Who, "remote", a.Remote, "status", a.Status}
	attrs = append(attrs, "request_id", a.RequestID)
	if a.Count > 0 {
		attrs = append(attrs, "messages", a.Count)
	}
	if a.Text == "" {
		return attrs
	}
	attrs = append(attrs, "act", a.Text)
	if a.Subject != "" {
		key := "queue"
		switch noun, _, _ := strings.Cut(a.Text, " "); noun {
		case "task", "process":
			key = noun
		case "message":
			key = "message_id"
		}
		attrs = append(attrs, key, a.Subject)
	}
	return attrs
}
