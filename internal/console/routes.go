package console

import (
	"context"
	"time"

	"tendril/api"
)

// kind says what a route asks of its caller, see [kind.scope].
type kind int

const (
	// open routes show health and counts to whoever reaches the listener, and to
	// callers with the token the details, see [publisher].
	open kind = iota
	// private routes show settings, or what others said: they need the token.
	private
	// bodies routes show messages: they need the token, and who asked is recorded.
	bodies
	// produce routes put messages in: they need the token and a JSON body.
	produce
	// act routes change something else, as produce does, and each is logged.
	act
	// hook routes are acts for callers that can send no body: they need the
	// token, and each is logged. A page of another site cannot send the token.
	hook
	// deploys and deployHook are act and hook for routes that run other code afterwards.
	deploys
	deployHook
	// own routes let others in: they need the owner's token and a JSON body.
	own
)

// route is one line of the table of everything the console answers.
type route struct {
	pattern string
	kind    kind
	handle  handler
	// limit is how long an answer may take where that is longer than 25 s;
	// 0 where it is not.
	limit time.Duration
}

// routes is the whole surface. A method and path that are not here are 404. The
// methods of [Client] name the same patterns.
func routes(opts *Options, closed context.Context) []route {
	e := &environmentRoutes{opts, closed}
	q := &queueRoutes{opts.Broker, e.environment}
	t := &taskRoutes{opts.Tasks}
	queues := func(handle handler) handler {
		return need(opts.Broker != nil, "this environment uses Amazon SQS: the console holds no queues of its own",
			"name the queue by its URL, as in 'tendril peek URL', or look at it in Amazon SQS", handle)
	}
	h := &opts.History
	pause, resume := taking(e.pause), takingNothing(e.resume)
	reload := need(opts.Reload != nil, "nothing here can be reloaded: this process serves queues only",
		"ask where 'tendril up' runs", takingNothing(e.reload))
	settings := func(handle handler) handler {
		return need(opts.Configuration != nil, "this process serves queues only: its settings are changed in its files",
			"ask where 'tendril up' runs", handle)
	}
	return []route{
		{pattern: "GET /livez", kind: open, handle: probe(opts.Live, false)},
		{pattern: "GET /healthz", kind: open, handle: probe(opts.Live, false)},
		{pattern: "GET /readyz", kind: open, handle: probe(opts.Ready, true)},
		{pattern: "GET /startupz", kind: open, handle: probe(opts.Started, false)},
		{pattern: "GET /-/drain", kind: hook, handle: e.hookDrain, limit: maxHookWait},
		{pattern: "POST /-/drain", kind: hook, handle: e.hookDrain, limit: maxHookWait},
		{pattern: "POST /-/quiet", kind: hook, handle: taking(e.hookQuiet)},
		{pattern: "POST /-/reload", kind: deployHook, handle: reload, limit: api.MaxDeploy},

		{pattern: "GET /api/v1/caller", kind: open, handle: e.getCaller},
		{pattern: "GET /api/v1/status", kind: open, handle: e.getStatus},
		{pattern: "GET /api/v1/environment", kind: private, handle: need(opts.Describe != nil,
			"this process serves queues only: it has no environment to describe", "ask where 'tendril up' runs", e.describe)},
		{pattern: "GET /api/v1/doctor", kind: private, handle: need(opts.Examine != nil,
			"this process does not examine itself", "ask where 'tendril up' or 'tendril serve' runs", e.examine)},
		{pattern: "GET /api/v1/config", kind: private, handle: settings(e.configuration)},
		{pattern: "GET /api/v1/health", kind: open, handle: need(opts.Health != nil,
			"this process has no health monitor: it only serves queues", "ask /readyz", e.getHealth)},
		{pattern: "GET /api/v1/scale", kind: open, handle: need(opts.Scale != nil,
			"this process does not scale: it works on no queue", "ask where 'tendril up' runs", e.getScale)},
		{pattern: "GET /api/v1/scale/decisions", kind: private, handle: need(opts.ScaleDecisions != nil,
			"this process does not scale: it works on no queue", "ask where 'tendril up' runs", e.scaleDecisions)},
		{pattern: "GET /api/v1/versions", kind: private, handle: need(opts.Versions != nil,
			"this environment runs no app that has versions", "start it with 'tendril up DIR'", e.versions)},
		{pattern: "GET /api/v1/instances", kind: private, handle: need(opts.Instances != nil,
			"this process knows of no instances", "ask where 'tendril up' or 'tendril serve' runs", e.instances)},
		{pattern: "GET /api/v1/series", kind: open, handle: need(opts.Series != nil,
			"this process keeps no curves", "ask where 'tendril up' or 'tendril serve' runs", e.getSeries)},
		{pattern: "GET /api/v1/deliveries", kind: open, handle: e.getDeliveries},
		{pattern: "GET /api/v1/messages/{id}/outcome", kind: open, handle: e.getOutcome},
		{pattern: "GET /api/v1/messages/{id}/exchange", kind: bodies, handle: e.getExchange},
		{pattern: "POST /api/v1/exchanges", kind: act, handle: taking(e.recordExchanges)},
		{pattern: "GET /api/v1/events", kind: private, handle: need(h.Events != nil,
			"this environment keeps no events: it has no data directory", "start it with an embedded queue", h.events)},
		{pattern: "GET /api/v1/logs", kind: private, handle: need(h.Lines != nil, "this process keeps no lines of its log",
			"ask where 'tendril up' or 'tendril serve' runs", h.logs)},
		{pattern: "GET /api/v1/queues", kind: open, handle: queues(q.list)},
		{pattern: "GET /api/v1/queues/{name}", kind: open, handle: queues(q.get)},
		{pattern: "GET /api/v1/queues/{name}/count", kind: bodies, handle: queues(q.count)},
		{pattern: "GET /api/v1/queues/{name}/messages", kind: bodies, handle: queues(q.messages)},
		{pattern: "GET /api/v1/queues/{name}/messages/{id}", kind: bodies, handle: queues(q.message)},
		{pattern: "GET /api/v1/queues/{name}/reasons", kind: private, handle: queues(q.reasons)},
		{pattern: "GET /api/v1/tasks", kind: open, handle: t.present(t.list)},
		{pattern: "GET /api/v1/tasks/{name}/history", kind: open, handle: t.present(t.history)},
		{pattern: "GET /api/v1/history", kind: open, handle: t.present(t.history)},

		{pattern: "POST /api/v1/queues", kind: act, handle: queues(taking(q.create))},
		{pattern: "DELETE /api/v1/queues/{name}", kind: act, handle: queues(q.deleteQueue)},
		{pattern: "POST /api/v1/queues/{name}/messages", kind: produce, handle: queues(taking(q.send))},
		{pattern: "POST /api/v1/queues/{name}/receive", kind: act, handle: queues(taking(q.receive))},
		{pattern: "POST /api/v1/queues/{name}/acknowledge", kind: act, handle: queues(taking(q.acknowledge))},
		{pattern: "POST /api/v1/queues/{name}/pause", kind: act, handle: pause},
		{pattern: "POST /api/v1/queues/{name}/resume", kind: act, handle: resume},
		{pattern: "POST /api/v1/queues/{name}/purge", kind: act, handle: queues(taking(q.purge))},
		{pattern: "POST /api/v1/queues/{name}/move", kind: act, handle: queues(taking(q.move))},
		{pattern: "POST /api/v1/queues/{name}/redrive", kind: act, handle: queues(taking(q.redrive))},
		{pattern: "GET /api/v1/queues/{name}/redrive", kind: open, handle: queues(q.redriveTask)},
		{pattern: "DELETE /api/v1/queues/{name}/redrive", kind: act, handle: queues(q.cancelRedrive)},
		{pattern: "POST /api/v1/queues/{name}/delete", kind: act, handle: queues(taking(q.delete))},
		{pattern: "DELETE /api/v1/queues/{name}/messages/{id}", kind: act, handle: queues(q.deleteOne)},
		{pattern: "POST /api/v1/queues/{name}/messages/{id}/retry", kind: act, handle: queues(takingNothing(q.retry))},
		{pattern: "POST /api/v1/queues/{name}/messages/{id}/delay", kind: act, handle: queues(taking(q.delay))},
		{pattern: "POST /api/v1/queues/{name}/messages/{id}/edit", kind: act, handle: queues(taking(q.edit))},
		{pattern: "POST /api/v1/tasks/{name}/run", kind: act, handle: t.present(takingNothing(t.run))},
		{pattern: "POST /api/v1/tasks/{name}/pause", kind: act, handle: t.present(taking(t.pause))},
		{pattern: "POST /api/v1/tasks/{name}/resume", kind: act, handle: t.present(takingNothing(t.resume))},
		{pattern: "POST /api/v1/deploy", kind: deploys, limit: api.MaxDeploy, handle: need(opts.Deploy != nil,
			"this environment runs no app whose version could change", "start it with 'tendril up DIR'", taking(e.deploy))},
		{pattern: "POST /api/v1/deploy/abort", kind: deploys, limit: api.MaxDeploy, handle: need(opts.AbortDeploy != nil,
			"this environment runs no app whose version could change", "start it with 'tendril up DIR'",
			takingNothing(e.abortDeploy))},
		{pattern: "POST /api/v1/rollback", kind: deploys, limit: api.MaxDeploy, handle: need(opts.Rollback != nil,
			"this environment runs no app whose version could change", "start it with 'tendril up DIR'", taking(e.rollback))},
		{pattern: "POST /api/v1/processes/{name}/restart", kind: deploys, limit: api.MaxDeploy,
			handle: need(opts.RestartProcess != nil, "this environment runs no app whose processes could be restarted",
				"start it with 'tendril up DIR'", takingNothing(e.restartProcess))},
		{pattern: "POST /api/v1/config/preview", kind: produce, handle: settings(taking(e.previewChange))},
		{pattern: "POST /api/v1/config", kind: act, handle: settings(taking(e.changeSettings))},
		{pattern: "POST /api/v1/reload", kind: deploys, handle: reload, limit: api.MaxDeploy},
		{pattern: "POST /api/v1/quiet", kind: act, handle: pause},
		{pattern: "POST /api/v1/resume", kind: act, handle: resume},
		{pattern: "POST /api/v1/drain", kind: act, handle: taking(e.drain)},
	}
}
