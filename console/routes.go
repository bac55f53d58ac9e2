package console

import (
	"net/http"
	"time"

	"tendril/health"
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
	handle  handler
	// limit is how long an answer may take where that is longer than [MaxWait];
	// 0 where it is not.
	limit time.Duration
}

// routes is the whole surface. A method and path that are not here are 404. The
// methods of [Client] name the same patterns.
func routes(opts *Options, closed <-chan struct{}) []route {
	e := &environmentRoutes{opts, closed}
	q := &queueRoutes{opts.Broker, e.environment}
	t := &taskRoutes{opts.Tasks}
	queues := func(handle handler) handler {
		return need(opts.Broker != nil, "this environment uses Amazon SQS: the console holds no queues of its own",
			"name the queue by its URL, as in 'tendril peek URL', or look at it in Amazon SQS", handle)
	}
	worker := func(has bool, handle handler) handler {
		return need(has, "this process has no worker: it serves queues only",
			"pause the environment that works on the queue, where 'tendril up' runs", handle)
	}
	deliveries := func(handle handler) handler {
		return need(opts.Deliveries != nil, "this process delivers nothing: it serves queues only",
			"outcomes are known where 'tendril up' runs", handle)
	}
	drain := func(handle handler) handler {
		return need(opts.Drain != nil, "this process cannot be drained", "end it with the signal TERM", handle)
	}
	pause := worker(opts.Pause != nil, taking(e.pause))
	resume := worker(opts.Resume != nil, takingNothing(e.resume))
	reload := takingNothing(e.reload)
	if opts.Reload == nil {
		reload = t.present(takingNothing(t.reload))
	}
	return []route{
		{pattern: "GET /livez", kind: open, handle: probe(opts.Live)},
		{pattern: "GET /healthz", kind: open, handle: probe(opts.Live)},
		{pattern: "GET /readyz", kind: open, handle: e.readyz},
		{pattern: "GET /startupz", kind: open, handle: probe(opts.Started)},
		{pattern: "GET /-/drain", kind: hook, handle: drain(e.hookDrain), limit: maxHookWait},
		{pattern: "POST /-/drain", kind: hook, handle: drain(e.hookDrain), limit: maxHookWait},
		{pattern: "POST /-/quiet", kind: hook, handle: pause},
		{pattern: "POST /-/reload", kind: hook, handle: reload, limit: MaxDeploy},

		{pattern: "GET /api/v1/status", kind: open, handle: e.getStatus},
		{pattern: "GET /api/v1/health", kind: open, handle: need(opts.Health != nil,
			"nothing here judges how the environment does: this process serves queues only", "ask /readyz", e.getHealth)},
		{pattern: "GET /api/v1/scale", kind: open, handle: need(opts.Scale != nil,
			"nothing here works out a size: this process works on no queue", "ask where 'tendril up' runs", e.getScale)},
		{pattern: "GET /api/v1/deliveries", kind: open, handle: deliveries(e.getDeliveries)},
		{pattern: "GET /api/v1/messages/{id}/outcome", kind: open, handle: deliveries(e.getOutcome)},
		{pattern: "GET /api/v1/queues", kind: open, handle: queues(q.list)},
		{pattern: "GET /api/v1/queues/{name}", kind: open, handle: queues(q.get)},
		{pattern: "GET /api/v1/queues/{name}/messages", kind: private, handle: queues(q.messages)},
		{pattern: "GET /api/v1/queues/{name}/messages/{id}", kind: private, handle: queues(q.message)},
		{pattern: "GET /api/v1/tasks", kind: open, handle: t.present(t.list)},
		{pattern: "GET /api/v1/tasks/{name}/history", kind: open, handle: t.present(t.history)},
		{pattern: "GET /api/v1/history", kind: open, handle: t.present(t.history)},

		{pattern: "POST /api/v1/queues", kind: act, handle: queues(taking(q.create))},
		{pattern: "POST /api/v1/queues/{name}/messages", kind: produce, handle: queues(taking(q.send))},
		{pattern: "POST /api/v1/queues/{name}/pause", kind: act, handle: pause},
		{pattern: "POST /api/v1/queues/{name}/resume", kind: act, handle: resume},
		{pattern: "POST /api/v1/queues/{name}/purge", kind: act, handle: queues(takingNothing(q.purge))},
		{pattern: "POST /api/v1/queues/{name}/move", kind: act, handle: queues(taking(q.move))},
		{pattern: "POST /api/v1/queues/{name}/delete", kind: act, handle: queues(taking(q.delete))},
		{pattern: "DELETE /api/v1/queues/{name}/messages/{id}", kind: act, handle: queues(q.deleteOne)},
		{pattern: "POST /api/v1/tasks/{name}/run", kind: act, handle: t.present(takingNothing(t.run))},
		{pattern: "POST /api/v1/tasks/{name}/pause", kind: act, handle: t.present(taking(t.pause))},
		{pattern: "POST /api/v1/tasks/{name}/resume", kind: act, handle: t.present(takingNothing(t.resume))},
		{pattern: "POST /api/v1/deploy", kind: act, limit: MaxDeploy, handle: need(opts.Deploy != nil,
			"this environment runs no app whose version could change", "start it with 'tendril up DIR'", taking(e.deploy))},
		{pattern: "POST /api/v1/reload", kind: act, handle: reload, limit: MaxDeploy},
		{pattern: "POST /api/v1/quiet", kind: act, handle: pause},
		{pattern: "POST /api/v1/resume", kind: act, handle: resume},
		{pattern: "POST /api/v1/drain", kind: act, handle: drain(taking(e.drain))},
	}
}

// probe answers with the checks that ask returns: 200 when every one is OK and 503
// when not. It lists those that are not, or all of them with ?verbose.
func probe(ask func() []health.Check) handler {
	return func(r *http.Request) (any, error) {
		checks, passed := all(ask)
		said := probed{"ok", worthSaying(r, checks)}
		if !passed {
			said.Status = "failed"
		}
		return answer{probeStatus(passed), said}, nil
	}
}
