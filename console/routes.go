package console

import "net/http"

// kind says what a route asks of its caller.
type kind int

const (
	// open routes show health and counts to whoever reaches the listener.
	open kind = iota
	// private routes show message bodies: they need the token.
	private
	// produce routes put messages in: they need the token and a JSON body.
	produce
	// act routes change something else, as produce does, and each is logged.
	act
)

// route is one line of the table of everything the console answers.
type route struct {
	pattern string
	kind    kind
	handle  func(*http.Request) (answer, error)
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
		{"GET /livez", open, s.livez},
		{"GET /healthz", open, s.livez},
		{"GET /readyz", open, s.readyz},

		{"GET /api/v1/status", open, s.getStatus},
		{"GET /api/v1/deliveries", open, s.getDeliveries},
		{"GET /api/v1/messages/{id}/outcome", open, s.getOutcome},
		{"GET /api/v1/queues", open, s.getQueues},
		{"GET /api/v1/queues/{name}", open, s.getQueue},
		{"GET /api/v1/queues/{name}/messages", private, s.getMessages},
		{"GET /api/v1/queues/{name}/messages/{id}", private, s.getMessage},
		{"GET /api/v1/tasks", open, s.getTasks},
		{"GET /api/v1/tasks/{name}/history", open, s.getHistory},
		{"GET /api/v1/history", open, s.getHistory},

		{"POST /api/v1/queues", act, s.postQueue},
		{"POST /api/v1/queues/{name}/messages", produce, s.postMessages},
		{"POST /api/v1/queues/{name}/pause", act, s.postPause},
		{"POST /api/v1/queues/{name}/resume", act, s.postResume},
		{"POST /api/v1/queues/{name}/purge", act, s.postPurge},
		{"POST /api/v1/queues/{name}/move", act, s.postMove},
		{"POST /api/v1/queues/{name}/delete", act, s.postDelete},
		{"DELETE /api/v1/queues/{name}/messages/{id}", act, s.deleteMessage},
		{"POST /api/v1/tasks/{name}/run", act, s.postTaskRun},
		{"POST /api/v1/tasks/{name}/pause", act, s.postTaskPause},
		{"POST /api/v1/tasks/{name}/resume", act, s.postTaskResume},
		{"POST /api/v1/reload", act, s.postReload},
		{"POST /api/v1/quiet", act, s.postQuiet},
		{"POST /api/v1/resume", act, s.postResumeAll},
		{"POST /api/v1/drain", act, s.postDrain},
	}
}
