package console

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"tendril/api"
)

// kind determines a route's requirements, see [kind.scope].
type kind int

const (
	// open routes are public. Details need the scope read; see [withoutDetails].
	open kind = iota
	// private routes return settings, events, logs, or text from the app, hooks and other servers. They need the scope
	// read.
	private
	// bodies routes read or search message bodies and need the scope read. Reads are audited.
	bodies
	// produce routes send messages, or preview a change. They need the scope act and a JSON body. Calls with a token are
	// not audited.
	produce
	// act routes make other changes. They need the scope act and, except for DELETE, a JSON body. Calls are audited.
	act
	// hook routes are actions for callers that may be unable to send a body. A GET needs a token, which another site's
	// page cannot send.
	hook
	// deploys and deployHook are like act and hook, for routes that run new code.
	deploys
	deployHook
	// own routes grant access to others. They need the owner's token and a JSON body.
	own
)

type route struct {
	pattern     string
	kind        kind
	act         string
	limit       time.Duration // 0 means 25 s
	perInstance bool
	handle      func(*call) (any, error)

	summary, query string
	takes, gives   reflect.Type
}

func (r *route) wildcards() (names []string) {
	for part := range strings.SplitSeq(r.pattern, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}

func (r *route) method() string {
	method, _, _ := strings.Cut(r.pattern, " ")
	return method
}

func newRoute[Body, Answer any](k kind, row api.Route[Body, Answer], handle func(*call) (any, error)) route {
	return route{pattern: row.Pattern, kind: k, act: row.Act, limit: row.Limit, handle: handle, summary: row.Summary,
		query: row.Query, takes: reflect.TypeFor[Body](), gives: reflect.TypeFor[Answer]()}
}

func withBody[Body, Answer any](k kind, row api.Route[Body, Answer], handle func(*call, Body) (Answer, error)) route {
	return newRoute(k, row, func(c *call) (any, error) {
		var body Body
		if err := c.body.read(&body); err != nil {
			return nil, err
		}
		if err := checkBody(&body); err != nil {
			return nil, err
		}
		return handle(c, body)
	})
}

func noBody[Answer any](k kind, row api.Route[api.NoBody, Answer], handle func(*call) (Answer, error)) route {
	if strings.HasPrefix(row.Pattern, http.MethodPost) {
		return withBody(k, row, func(c *call, _ api.NoBody) (Answer, error) { return handle(c) })
	}
	return newRoute(k, row, func(c *call) (any, error) { return handle(c) })
}

func needs(isPresent bool, message, hint string, routes ...route) []route {
	return refuseUnless(func() bool { return isPresent }, message, hint, routes)
}

func refuseUnless(isPresent func() bool, message, hint string, routes []route) []route {
	for i := range routes {
		handle := routes[i].handle
		routes[i].handle = func(c *call) (any, error) {
			if !isPresent() {
				return nil, api.Conflict(message, hint)
			}
			return handle(c)
		}
	}
	return routes
}

func view[Answer any](read func() Answer) func(*call) (Answer, error) {
	return func(*call) (Answer, error) { return read(), nil }
}

var (
	getLive    = api.Route[api.NoBody, probed]{Pattern: "GET /livez"}
	getHealthz = api.Route[api.NoBody, probed]{Pattern: "GET /healthz"}
	getReady   = api.Route[api.NoBody, probed]{Pattern: "GET /readyz"}
	getStarted = api.Route[api.NoBody, probed]{Pattern: "GET /startupz"}
	getDrain   = api.Route[api.NoBody, api.Drained]{Pattern: "GET /-/drain", Act: "drain requested", Limit: maxHookWait}
	postDrain  = api.Route[api.NoBody, api.Drained]{Pattern: "POST /-/drain", Act: "drain requested", Limit: maxHookWait}
	quietHook  = api.Route[api.Reason, api.Paused]{Pattern: "POST /-/quiet", Act: "all queues paused"}
	reloadHook = api.Route[api.NoBody, api.ReloadResult]{Pattern: "POST /-/reload", Act: "settings reloaded", Limit: api.MaxDeploy}
)

const (
	askUp  = "use the process of 'tendril up'"
	askAny = "use the process of 'tendril up' or 'tendril serve'"
)

func routes(opts *Options, closed context.Context) []route {
	e := &environmentRoutes{opts, closed}
	h := &opts.History
	const (
		noScale   = "nothing to scale: this process does not receive from queues"
		noVersion = "no app runs here, so its version cannot change"
		startApp  = "start it with 'tendril up DIR'"
	)
	return slices.Concat([]route{
		noBody(open, getLive, probe(opts.Probes.Live)),
		noBody(open, getHealthz, probe(opts.Probes.Live)),
		noBody(open, getReady, probeReady(opts.Probes.Ready)),
		noBody(open, getStarted, probe(opts.Probes.Started)),
		newRoute(hook, getDrain, e.hookDrain),
		newRoute(hook, postDrain, e.hookDrain),
		withBody(hook, quietHook, e.hookQuiet),

		noBody(open, api.GetCaller, e.getCaller),
		noBody(bodies, api.GetExchange, e.getExchange),
		withBody(act, api.RecordExchanges, e.recordExchanges),
		withBody(act, api.PauseQueue, e.pause),
		withBody(act, api.ResumeQueue, e.resume),
		withBody(act, api.PauseAll, e.pause),
		withBody(act, api.ResumeAll, e.resume),
		withBody(act, api.Drain, e.drain),
	}, perInstance(
		noBody(open, api.GetStatus, e.getStatus),
		noBody(open, api.GetDeliveries, e.getDeliveries),
		noBody(open, api.GetOutcome, e.getOutcome),
	), needs(opts.Reload != nil, "nothing to reload: this process only serves queues", askUp,
		noBody(deployHook, reloadHook, e.reload),
		noBody(deploys, api.Reload, e.reload),
	), needs(opts.Settings.Describe != nil, "no environment to describe: this process only serves queues", askUp,
		noBody(private, api.GetEnvironment, e.describe),
	), needs(opts.Settings.Examine != nil, "this process runs no checks", askAny,
		noBody(private, api.GetExamination, e.examine),
	), needs(opts.Settings.Configuration != nil,
		"this process only serves queues: edit its settings file", askUp,
		noBody(private, api.GetConfiguration, view(opts.Settings.Configuration)),
		withBody(produce, api.PreviewSettings, e.previewChange),
		withBody(act, api.ChangeSettings, e.changeSettings),
	), needs(opts.Views.Health != nil, "this process has no health monitor: it only serves queues",
		"'tendril doctor' shows problems, and GET /readyz whether the queues are served",
		perInstance(noBody(open, api.GetHealth, view(e.health)))...,
	), needs(opts.Views.Scale != nil, noScale, askUp,
		perInstance(noBody(open, api.GetScale, view(opts.Views.Scale)))...,
	), needs(opts.Views.ScaleDecisions != nil, noScale, askUp,
		perInstance(noBody(private, api.GetScaleDecisions, e.scaleDecisions))...,
	), needs(opts.Views.Instances != nil, "this process has no list of instances", askAny,
		noBody(private, api.GetInstances, view(opts.Views.Instances)),
	), needs(opts.Views.Series != nil, "this process records no time series", askAny,
		perInstance(noBody(open, api.GetSeries, e.getSeries))...,
	), needs(h.Events != nil, "this environment stores no events: it has no data directory",
		"start it with an embedded queue",
		perInstance(newRoute(private, api.GetEvents, h.events))...,
	), needs(h.Lines != nil, "this process stores no log lines", askAny,
		perInstance(newRoute(private, api.GetLogs, h.logs))...,
	), needs(opts.Versions.Versions != nil, "no app runs here, so there are no versions", startApp,
		perInstance(noBody(private, api.GetVersions, e.versions))...,
	), needs(opts.Deploy != nil, noVersion, startApp,
		withBody(deploys, api.Deploy, e.deploy),
		noBody(deploys, api.AbortDeploy, e.abortDeploy),
		withBody(deploys, api.Rollback, e.rollback),
	), needs(opts.Versions.RestartProcess != nil, "no app runs here, so no process can be restarted", startApp,
		noBody(deploys, api.RestartProcess, e.restartProcess),
	), queueTable(&queueRoutes{opts.Broker, e.environment}), taskTable(&taskRoutes{opts.Tasks}))
}

func queueTable(q *queueRoutes) []route {
	return needs(q.broker != nil, "this environment has no embedded queues",
		"use the queue's URL, as in 'tendril peek URL', the console of 'tendril serve', or the one of Amazon SQS",
		noBody(open, api.GetQueues, q.list),
		noBody(open, api.GetQueue, q.get),
		noBody(bodies, api.CountMessages, q.count),
		noBody(bodies, api.GetMessages, q.messages),
		noBody(bodies, api.GetMessage, q.message),
		noBody(private, api.GetReasons, q.reasons),
		withBody(act, api.CreateQueue, q.create),
		noBody(act, api.DeleteQueue, q.deleteQueue),
		withBody(produce, api.SendMessages, q.send),
		withBody(act, api.ReceiveMessages, q.receive),
		withBody(act, api.AcknowledgeMessages, q.acknowledge),
		withBody(act, api.PurgeQueue, q.purge),
		withBody(act, api.MoveMessages, q.move),
		withBody(act, api.StartRedrive, q.redrive),
		noBody(open, api.GetRedrive, q.redriveTask),
		noBody(act, api.CancelRedrive, q.cancelRedrive),
		withBody(act, api.DeleteMessages, q.deleteSelected),
		noBody(act, api.DeleteMessage, q.deleteOne),
		noBody(act, api.RetryMessage, q.retry),
		withBody(act, api.DelayMessage, q.delay),
		withBody(act, api.EditMessage, q.edit),
	)
}

func taskTable(t *taskRoutes) []route {
	message, hint := "this environment has no periodic tasks", "write cron.yaml, or add --cron FILE"
	if t.tasks == nil {
		message, hint = "this process runs no periodic tasks: it only serves queues", askUp
	}
	return refuseUnless(t.present, message, hint, []route{
		noBody(open, api.GetTasks, t.list),
		noBody(open, api.GetTaskHistory, t.history),
		noBody(open, api.GetHistory, t.history),
		noBody(act, api.RunTask, t.run),
		withBody(act, api.PauseTask, t.pause),
		noBody(act, api.ResumeTask, t.resume),
	})
}
