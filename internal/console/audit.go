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

// record logs an act and calls [Access].Audit. The answer is what the handler returned.
func (s *Server) record(r *http.Request, status int, refusal *api.Error, body any) {
	act := s.actOf(r, status, body)
	if refusal == nil {
		s.log.Info("console act", act.attributes()...)
	} else {
		act.Refused = refusal.Message
		if status < http.StatusInternalServerError && !s.auditor.admits(act.At) {
			return
		}
		s.log.Warn("console act refused", append(act.attributes(), "reason", act.Refused)...)
	}
	s.audit(act)
}

// recordRead logs who read message bodies, once in a minute for each page of them.
func (s *Server) recordRead(r *http.Request, body any) {
	act := s.actOf(r, http.StatusOK, body)
	if act.Count > 0 && s.auditor.admitsRead(act.At, act.Who+" "+act.Path+"?"+r.URL.RawQuery) {
		s.log.Info("message bodies read", act.attributes()...)
		s.audit(act)
	}
}

func (s *Server) audit(act Act) {
	if s.opts.Audit != nil {
		s.opts.Audit(act)
	}
}

func (s *Server) actOf(r *http.Request, status int, body any) Act {
	act := Act{At: time.Now(), Who: callerOf(r).who, Remote: s.senderOf(r), Method: r.Method, Path: r.URL.Path,
		Text:    actTexts[r.Pattern],
		Subject: cmp.Or(r.PathValue("id"), r.PathValue("name")), Status: status, RequestID: requestID(r)}
	act.Count = touched(body)
	return act
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

// actTexts say what the routes do, by their patterns. The first word is what the id or the name in the path is of:
// "message" of an id, "task" of a task, "process" of a process; all others are of a queue.
var actTexts = map[string]string{
	"GET /-/drain":   "drain asked for",
	"POST /-/drain":  "drain asked for",
	"POST /-/quiet":  "all queues paused",
	"POST /-/reload": "settings reloaded",

	"GET /api/v1/messages/{id}/exchange":      "message read, with request and answer",
	"GET /api/v1/queues/{name}/count":         "bodies searched",
	"GET /api/v1/queues/{name}/messages":      "bodies read",
	"GET /api/v1/queues/{name}/messages/{id}": "message read",

	"POST /api/v1/exchanges":                         "requests recorded",
	"POST /api/v1/queues":                            "queue created",
	"DELETE /api/v1/queues/{name}":                   "queue deleted",
	"POST /api/v1/queues/{name}/messages":            "messages sent",
	"POST /api/v1/queues/{name}/receive":             "messages received",
	"POST /api/v1/queues/{name}/acknowledge":         "messages acknowledged",
	"POST /api/v1/queues/{name}/pause":               "queue paused",
	"POST /api/v1/queues/{name}/resume":              "queue resumed",
	"POST /api/v1/queues/{name}/purge":               "queue purged",
	"POST /api/v1/queues/{name}/move":                "messages moved",
	"POST /api/v1/queues/{name}/redrive":             "redrive started",
	"DELETE /api/v1/queues/{name}/redrive":           "redrive cancelled",
	"POST /api/v1/queues/{name}/delete":              "messages deleted",
	"DELETE /api/v1/queues/{name}/messages/{id}":     "message deleted",
	"POST /api/v1/queues/{name}/messages/{id}/retry": "message retried",
	"POST /api/v1/queues/{name}/messages/{id}/delay": "message delayed",
	"POST /api/v1/queues/{name}/messages/{id}/edit":  "message edited and sent again",
	"POST /api/v1/tasks/{name}/run":                  "task run enqueued",
	"POST /api/v1/tasks/{name}/pause":                "task paused",
	"POST /api/v1/tasks/{name}/resume":               "task resumed",
	"POST /api/v1/processes/{name}/restart":          "process restarted",
	"POST /api/v1/deploy":                            "app deployed",
	"POST /api/v1/deploy/abort":                      "deployment aborted",
	"POST /api/v1/rollback":                          "app rolled back",
	"POST /api/v1/config/preview":                    "change of the settings previewed",
	"POST /api/v1/config":                            "settings changed",
	"POST /api/v1/reload":                            "settings reloaded",
	"POST /api/v1/quiet":                             "all queues paused",
	"POST /api/v1/resume":                            "all queues resumed",
	"POST /api/v1/drain":                             "drain asked for",
	"POST /api/v1/login":                             "login link created",
}
