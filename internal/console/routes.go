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
	// open routes are public. Details need the scope read; see [public].
	open kind = iota
	// private routes return settings or external text and need the scope read.
	private
	// bodies routes return messages, need the scope read, and are audited.
	bodies
	// produce routes send messages. They need the scope act and a JSON body.
	produce
	// act routes make other changes. Like produce, they need the scope act and a JSON body; each call is logged.
	act
	// hook routes are actions for callers that cannot send a body. They need a token, which another site's page cannot
	// send.
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
	need        *need
	handle      func(*call) (any, error)

	summary, query string
	takes, gives   reflect.Type
}

type need struct {
	has           func() bool
	message, hint string
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

func bind[Body, Answer any](k kind, row api.Route[Body, Answer], handle func(*call) (any, error)) route {
	return route{pattern: row.Pattern, kind: k, act: row.Act, limit: row.Limit, handle: handle, summary: row.Summary,
		query: row.Query, takes: reflect.TypeFor[Body](), gives: reflect.TypeFor[Answer]()}
}

func do[Body, Answer any](k kind, row api.Route[Body, Answer], handle func(*call, Body) (Answer, error)) route {
	return bind(k, row, func(c *call) (any, error) {
		var body Body
		if err := c.body.read(&body); err != nil {
			return nil, err
		}
		if err := check(&body); err != nil {
			return nil, err
		}
		return handle(c, body)
	})
}

// show returns a route without a request body. A POST request must send {}.
func show[Answer any](k kind, row api.Route[api.NoBody, Answer], handle func(*call) (Answer, error)) route {
	if strings.HasPrefix(row.Pattern, http.MethodPost) {
		return do(k, row, func(c *call, _ api.NoBody) (Answer, error) { return handle(c) })
	}
	return bind(k, row, func(c *call) (any, error) { return handle(c) })
}

// The routes return 409 while has returns false.
func where(has func() bool, message, hint string, routes ...route) []route {
	for i := range routes {
		routes[i].need = &need{has, message, hint}
	}
	return routes
}

func set(is bool) func() bool { return func() bool { return is } }

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

func routes(opts *Options, closed context.Context) []route {
	e := &environmentRoutes{opts, closed}
	h := &opts.History
	const askUp, askAny = "use the process of 'tendril up'", "use the process of 'tendril up' or 'tendril serve'"
	const noScale = "this process does not scale: it receives from no queue"
	return slices.Concat([]route{
		show(open, getLive, probe(opts.Probes.Live, false)),
		show(open, getHealthz, probe(opts.Probes.Live, false)),
		show(open, getReady, probe(opts.Probes.Ready, true)),
		show(open, getStarted, probe(opts.Probes.Started, false)),
		bind(hook, getDrain, e.hookDrain),
		bind(hook, postDrain, e.hookDrain),
		do(hook, quietHook, e.hookQuiet),

		show(open, api.GetCaller, e.getCaller),
		show(bodies, api.GetExchange, e.getExchange),
		do(act, api.RecordExchanges, e.recordExchanges),
		do(act, api.PauseQueue, e.pause),
		do(act, api.ResumeQueue, e.resume),
		do(act, api.PauseAll, e.pause),
		do(act, api.ResumeAll, e.resume),
		do(act, api.Drain, e.drain),
	}, perInstance(
		show(open, api.GetStatus, e.getStatus),
		show(open, api.GetDeliveries, e.getDeliveries),
		show(open, api.GetOutcome, e.getOutcome),
	), where(set(opts.Reload != nil), "nothing to reload: this process only serves queues", askUp,
		show(deployHook, reloadHook, e.reload),
		show(deploys, api.Reload, e.reload),
	), where(set(opts.Settings.Describe != nil), "no environment to describe: this process only serves queues", askUp,
		show(private, api.GetEnvironment, e.describe),
	), where(set(opts.Settings.Examine != nil), "this process runs no checks", askAny,
		show(private, api.GetExamination, e.examine),
	), where(set(opts.Settings.Configuration != nil),
		"this process only serves queues: edit its settings file", askUp,
		show(private, api.GetConfiguration, e.configuration),
		do(produce, api.PreviewSettings, e.previewChange),
		do(act, api.ChangeSettings, e.changeSettings),
	), where(set(opts.Views.Health != nil), "this process has no health monitor: it only serves queues", "ask /readyz",
		perInstance(show(open, api.GetHealth, e.getHealth))...,
	), where(set(opts.Views.Scale != nil), noScale, askUp,
		perInstance(show(open, api.GetScale, e.getScale))...,
	), where(set(opts.Views.ScaleDecisions != nil), noScale, askUp,
		perInstance(show(private, api.GetScaleDecisions, e.scaleDecisions))...,
	), where(set(opts.Views.Instances != nil), "this process has no list of instances", askAny,
		show(private, api.GetInstances, e.instances),
	), where(set(opts.Views.Series != nil), "this process records no curves", askAny,
		perInstance(show(open, api.GetSeries, e.getSeries))...,
	), where(set(h.Events != nil), "this environment stores no events: it has no data directory",
		"start it with an embedded queue",
		perInstance(bind(private, api.GetEvents, h.events))...,
	), where(set(h.Lines != nil), "this process stores no log lines", askAny,
		perInstance(bind(private, api.GetLogs, h.logs))...,
	), where(set(opts.Versions.Versions != nil), "no app runs here, so there are no versions",
		"start it with 'tendril up DIR'",
		perInstance(show(private, api.GetVersions, e.versions))...,
	), where(set(opts.Deploy != nil), "no app runs here, so its version cannot change", "start it with 'tendril up DIR'",
		do(deploys, api.Deploy, e.deploy),
	), where(set(opts.Versions.AbortDeploy != nil), "no app runs here, so its version cannot change",
		"start it with 'tendril up DIR'",
		show(deploys, api.AbortDeploy, e.abortDeploy),
	), where(set(opts.Versions.Rollback != nil), "no app runs here, so its version cannot change",
		"start it with 'tendril up DIR'",
		do(deploys, api.Rollback, e.rollback),
	), where(set(opts.Versions.RestartProcess != nil), "no app runs here, so no process can be restarted",
		"start it with 'tendril up DIR'",
		show(deploys, api.RestartProcess, e.restartProcess),
	), queueTable(&queueRoutes{opts.Broker, e.environment}), taskTable(&taskRoutes{opts.Tasks}))
}

func queueTable(q *queueRoutes) []route {
	return where(set(q.broker != nil), "this environment uses Amazon SQS: the console has no queues of its own",
		"use the queue's URL, as in 'tendril peek URL', or the Amazon SQS console",
		show(open, api.GetQueues, q.list),
		show(open, api.GetQueue, q.get),
		show(bodies, api.CountMessages, q.count),
		show(bodies, api.GetMessages, q.messages),
		show(bodies, api.GetMessage, q.message),
		show(private, api.GetReasons, q.reasons),
		do(act, api.CreateQueue, q.create),
		show(act, api.DeleteQueue, q.deleteQueue),
		do(produce, api.SendMessages, q.send),
		do(act, api.ReceiveMessages, q.receive),
		do(act, api.AcknowledgeMessages, q.acknowledge),
		do(act, api.PurgeQueue, q.purge),
		do(act, api.MoveMessages, q.move),
		do(act, api.StartRedrive, q.redrive),
		show(open, api.GetRedrive, q.redriveTask),
		show(act, api.CancelRedrive, q.cancelRedrive),
		do(act, api.DeleteMessages, q.delete),
		show(act, api.DeleteMessage, q.deleteOne),
		show(act, api.RetryMessage, q.retry),
		do(act, api.DelayMessage, q.delay),
		do(act, api.EditMessage, q.edit),
	)
}

func taskTable(t *taskRoutes) []route {
	return where(t.present, "this environment has no periodic tasks", "write cron.yaml, or add --cron FILE",
		show(open, api.GetTasks, t.list),
		show(open, api.GetTaskHistory, t.history),
		show(open, api.GetHistory, t.history),
		show(act, api.RunTask, t.run),
		do(act, api.PauseTask, t.pause),
		show(act, api.ResumeTask, t.resume),
	)
}
