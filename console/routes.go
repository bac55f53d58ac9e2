package console

import (
	"net/http"
	"time"
)

// kind says what a route asks of its caller.
type kind int

const (
	// open routes show health and counts to whoever reaches the listener, and to
	// callers with the token the details, see [publisher].
	open kind = iota
	// private routes show message bodies: they need the token.
	private
	// produce routes put messages in: they need the token and a JSON body.
	produce
	// act routes change something else, as produce does, and each is logged.
	act
	// hook routes are acts for callers that can send no body: they need the
	// token, and each is logged. A page of another site cannot send the token.
	hook
)

// route is one line of the table of everything the console answers.
type route struct {
	pattern string
	kind    kind
	handle  func(*http.Request) (answer, error)
	// limit is how long an answer may take where that is longer than [MaxWait];
	// 0 where it is not.
	limit time.Duration
}

// answer is what a handler wants to be sent as JSON.
type answer struct {
	status int
	body   any
}

func ok(body any) answer { return answer{http.StatusOK, body} }

// routes is the whole surface. A method and path that are not here are 404.
func (s *Server) routes() []route {
	return []route{
		{pattern: "GET /livez", kind: open, handle: s.livez},
		{pattern: "GET /healthz", kind: open, handle: s.livez},
		{pattern: "GET /readyz", kind: open, handle: s.readyz},
		{pattern: "GET /startupz", kind: open, handle: s.startupz},
		{pattern: "GET /-/drain", kind: hook, handle: s.hookDrain, limit: maxHookWait},
		{pattern: "POST /-/drain", kind: hook, handle: s.hookDrain, limit: maxHookWait},
		{pattern: "POST /-/quiet", kind: hook, handle: s.postQuiet},
		{pattern: "POST /-/reload", kind: hook, handle: s.postReload, limit: MaxDeploy},

		{pattern: "GET /api/v1/status", kind: open, handle: s.getStatus},
		{pattern: "GET /api/v1/health", kind: open, handle: s.getHealth},
		{pattern: "GET /api/v1/scale", kind: open, handle: s.getScale},
		{pattern: "GET /api/v1/deliveries", kind: open, handle: s.getDeliveries},
		{pattern: "GET /api/v1/messages/{id}/outcome", kind: open, handle: s.getOutcome},
		{pattern: "GET /api/v1/queues", kind: open, handle: s.getQueues},
		{pattern: "GET /api/v1/queues/{name}", kind: open, handle: s.getQueue},
		{pattern: "GET /api/v1/queues/{name}/messages", kind: private, handle: s.getMessages},
		{pattern: "GET /api/v1/queues/{name}/messages/{id}", kind: private, handle: s.getMessage},
		{pattern: "GET /api/v1/tasks", kind: open, handle: s.getTasks},
		{pattern: "GET /api/v1/tasks/{name}/history", kind: open, handle: s.getHistory},
		{pattern: "GET /api/v1/history", kind: open, handle: s.getHistory},

		{pattern: "POST /api/v1/queues", kind: act, handle: s.postQueue},
		{pattern: "POST /api/v1/queues/{name}/messages", kind: produce, handle: s.postMessages},
		{pattern: "POST /api/v1/queues/{name}/pause", kind: act, handle: s.postPause},
		{pattern: "POST /api/v1/queues/{name}/resume", kind: act, handle: s.postResume},
		{pattern: "POST /api/v1/queues/{name}/purge", kind: act, handle: s.postPurge},
		{pattern: "POST /api/v1/queues/{name}/move", kind: act, handle: s.postMove},
		{pattern: "POST /api/v1/queues/{name}/delete", kind: act, handle: s.postDelete},
		{pattern: "DELETE /api/v1/queues/{name}/messages/{id}", kind: act, handle: s.deleteMessage},
		{pattern: "POST /api/v1/tasks/{name}/run", kind: act, handle: s.postTaskRun},
		{pattern: "POST /api/v1/tasks/{name}/pause", kind: act, handle: s.postTaskPause},
		{pattern: "POST /api/v1/tasks/{name}/resume", kind: act, handle: s.postTaskResume},
		{pattern: "POST /api/v1/deploy", kind: act, handle: s.postDeploy, limit: MaxDeploy},
		{pattern: "POST /api/v1/reload", kind: act, handle: s.postReload, limit: MaxDeploy},
		{pattern: "POST /api/v1/quiet", kind: act, handle: s.postQuiet},
		{pattern: "POST /api/v1/resume", kind: act, handle: s.postResumeAll},
		{pattern: "POST /api/v1/drain", kind: act, handle: s.postDrain},
	}
}
