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

// Act is a completed or refused action, or a read of message bodies.
type Act struct {
	At time.Time
	// Who is formatted as in [api.Caller]. Remote is an IP address, with the port unless a trusted proxy reported it.
	Who, Remote string
	// Text describes the action, such as "queue paused"; may be "".
	Method, Path, Text string
	// Subject is the affected queue, task, process or message; "" for the environment.
	Subject   string
	RequestID string
	// Read means that message bodies were read without a change.
	Read bool
	// Count is the number of messages affected or read; for a move in progress, of all messages to move.
	Count int
	// Refused is the reason for a failure; "" if the action succeeded.
	Status  int
	Refused string
}

func countMessages(answer any) (n int) {
	switch a := answer.(type) {
	case api.Count:
		for _, of := range a {
			n += of
		}
	case api.Message, api.Exchange:
		return 1
	case api.Placed:
		if a.ID != "" {
			return 1
		}
	case api.MessagePage:
		return len(a.Messages)
	case api.ReceivedList:
		return len(a.Messages)
	case api.SendAnswer:
		for _, r := range a.Results {
			if r.ID != "" {
				n++
			}
		}
	case api.Deleted:
		if a.Task != nil {
			return countMessages(*a.Task)
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

const (
	// maxRefused limits records of refused actions per minute, because anyone who reaches the listener can cause them.
	maxRefused = 60
	maxReads   = 1000
)

type auditor struct {
	mu      sync.Mutex
	start   time.Time // of the current minute
	refused int
	read    map[string]bool
}

func (a *auditor) admitRefused(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.resetEachMinute(now)
	a.refused++
	return a.refused <= maxRefused
}

// admitRead admits a read once a minute, because an open page repeats it. Beyond maxReads, it admits every read.
func (a *auditor) admitRead(now time.Time, what string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.resetEachMinute(now)
	if a.read[what] {
		return false
	}
	if len(a.read) < maxReads {
		a.read[what] = true
	}
	return true
}

func (a *auditor) resetEachMinute(now time.Time) {
	if now.Sub(a.start) >= time.Minute {
		a.start = now
		a.refused = 0
		a.read = map[string]bool{}
	}
}

func (s *service) recordAct(c *call, refusal *api.Error, answer any) {
	act := newAct(c, answer)
	if refusal == nil {
		s.opts.Logger.Info("console action", act.logAttrs()...)
		s.audit(act)
		return
	}

	act.Status = refusal.Status
	act.Refused = refusal.Message
	if act.Status < http.StatusInternalServerError && !s.auditor.admitRefused(act.At) {
		return
	}
	s.opts.Logger.Warn("console action rejected", append(act.logAttrs(), "reason", act.Refused)...)
	s.audit(act)
}

func (s *service) recordRead(c *call, answer any) {
	act := newAct(c, answer)
	act.Read = true
	if act.Count > 0 && s.auditor.admitRead(act.At, act.Who+" "+act.Path+"?"+c.query.Encode()) {
		s.opts.Logger.Info("message bodies read", act.logAttrs()...)
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
		Count: countMessages(answer)}
}

func (a *Act) logAttrs() []any {
	attrs := []any{"method", a.Method, "path", a.Path, "who", a.Who, "remote", a.Remote, "status", a.Status,
		"request_id", a.RequestID}
	if a.Count > 0 {
		attrs = append(attrs, "messages", a.Count)
	}
	if a.Text != "" {
		attrs = append(attrs, "act", a.Text)
	}
	if a.Text != "" && a.Subject != "" {
		attrs = append(attrs, a.subjectKey(), a.Subject)
	}
	return attrs
}

func (a *Act) subjectKey() string {
	switch noun, _, _ := strings.Cut(a.Text, " "); noun {
	case "task", "process":
		return noun
	case "message":
		return "message_id"
	}
	return "queue"
}
