package console

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/cron/periodic"
	"tendril/internal/observe/doctor"
	"tendril/internal/observe/health"
	"tendril/internal/observe/series"
	"tendril/queue"
)

const (
	maxHookWait   = 15 * time.Minute
	shownProblems = 20
	describeWait  = 10 * time.Second
	examineWait   = 20 * time.Second
)

type environmentRoutes struct {
	opts   *Options
	closed context.Context
}

func (e *environmentRoutes) bounded(parent context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, wait)
	stop := context.AfterFunc(e.closed, cancel)
	return ctx, func() { stop(); cancel() }
}

func (e *environmentRoutes) getStatus(*call) (api.Status, error) {
	st := e.environment()
	st.Environment = e.opts.Environment
	st.Version = e.opts.Version
	st.PID = os.Getpid()
	st.Backend = api.BackendSQS
	st.Checks, st.Ready = runChecks(e.opts.Probes.Ready)
	st.Problems = e.opts.Deliveries.Problems()
	st.Problems = st.Problems[:min(len(st.Problems), shownProblems)]
	st.Queues = notNull(st.Queues)

	if e.opts.Views.Health != nil {
		st.Health = new(e.health())
	}

	if b := e.opts.Broker; b != nil {
		st.Backend = api.BackendEmbedded
		queues, err := listQueues(b, st.Workers)
		if err != nil && !errors.Is(err, queue.ErrClosed) {
			return api.Status{}, err
		}
		if err == nil {
			st.Queues = append(queues, st.Queues...)
			st.Ledger = newAccount(b.TotalLedger(), queues)
		}
	}

	return st, nil
}

func (e *environmentRoutes) environment() api.Status {
	if e.opts.Status == nil {
		return api.Status{}
	}
	return e.opts.Status()
}

func (e *environmentRoutes) health() health.Report {
	r := e.opts.Views.Health()
	r.Causes = notNull(r.Causes)
	return r
}

func (e *environmentRoutes) describe(c *call) (api.Description, error) {
	ctx, cancel := e.bounded(c.ctx, describeWait)
	defer cancel()
	return e.opts.Settings.Describe(ctx), nil
}

func (e *environmentRoutes) examine(c *call) (doctor.Examination, error) {
	ctx, cancel := e.bounded(c.ctx, examineWait)
	defer cancel()
	return e.opts.Settings.Examine(ctx), nil
}

func (e *environmentRoutes) getSeries(c *call) (series.Curves, error) {
	name := c.query.Get("range")
	curves, known := e.opts.Views.Series(name)
	if !known {
		return series.Curves{}, api.BadRequest("invalid range "+strconv.Quote(name),
			"use one of "+strings.Join(series.Ranges(), ", "))
	}
	return curves, nil
}

type probed struct {
	// Status is "ok" or "failed"; /readyz uses Ready instead.
	Status string         `json:"status,omitempty"`
	Ready  *bool          `json:"ready,omitempty"`
	Checks []health.Check `json:"checks,omitempty"`
	failed bool           // the response has status 503
}

func probe(read func() []health.Check) func(*call) (probed, error) {
	return func(c *call) (probed, error) {
		checks, passed := runChecks(read)
		if !c.query.Has("verbose") {
			checks = slices.DeleteFunc(checks, func(one health.Check) bool { return one.OK })
		}
		answer := probed{Status: "ok", Checks: checks, failed: !passed}
		if !passed {
			answer.Status = "failed"
		}
		return answer, nil
	}
}

func probeReady(read func() []health.Check) func(*call) (probed, error) {
	run := probe(read)
	return func(c *call) (probed, error) {
		answer, err := run(c)
		answer.Status = ""
		answer.Ready = new(!answer.failed)
		return answer, err
	}
}

func runChecks(read func() []health.Check) (checks []health.Check, passed bool) {
	if read != nil {
		checks = slices.Clone(read())
	}
	return checks, !slices.ContainsFunc(checks, func(c health.Check) bool { return !c.OK })
}

func (e *environmentRoutes) getDeliveries(c *call) (api.DeliveryList, error) {
	limit, err := readLimit(c, api.DefaultDeliveries)
	if err != nil {
		return api.DeliveryList{}, err
	}
	return api.DeliveryList{Deliveries: e.opts.Deliveries.Recent(limit),
		Since: cmp.Or(e.opts.Deliveries.Since(), e.environment().StartedAt)}, nil
}

// Without ?wait, callers with the scope read may abbreviate the ID, and also see how the message left its queue.
func (e *environmentRoutes) getOutcome(c *call) (api.Delivery, error) {
	wait, err := parseWait(c.query.Get("wait"), api.MaxWait, 0)
	if err != nil {
		return api.Delivery{}, err
	}

	found := foundID{id: c.id}
	searches := wait == 0 && c.caller.may(api.ScopeRead)
	if searches {
		if found, err = e.fullID(c.ctx, c.id, searchTime(c.caller)); err != nil {
			return api.Delivery{}, err
		}
	}

	d, unknown := e.awaitDelivery(c.ctx, found.id, wait)
	if d.Outcome == api.InWork || errors.Is(unknown, errDrained) {
		return d, unknown
	}

	var ended ending
	if searches && !d.Done() {
		ended, err = e.endingOf(found.id)
		if err != nil || ended.delivery.At.After(d.At) {
			return ended.delivery, err
		}
	}

	switch {
	case unknown == nil:
		return d, nil
	case found.queue != "":
		return api.Delivery{MessageID: found.id, Queue: found.queue, Outcome: api.MessageStored}, nil
	}
	return d, e.unknownMessage(found, ended.since)
}

func (e *environmentRoutes) awaitDelivery(ctx context.Context, id string, wait time.Duration) (api.Delivery, error) {
	ctx, cancel := e.bounded(ctx, wait)
	defer cancel()
	d, err := e.awaitAttempt(ctx, id)
	if errors.Is(err, errDrained) {
		return d, err
	}
	if (err != nil || !d.Tried()) && e.opts.InWork != nil {
		if inWork, found := e.opts.InWork(id); found {
			return inWork, nil
		}
	}
	return d, err
}

var errDrained = api.Conflict("the environment stopped before it delivered the message, which is still in its queue", "")

// awaitAttempt returns [errDrained] once the environment has drained, if the message is still stored here.
func (e *environmentRoutes) awaitAttempt(ctx context.Context, id string) (d api.Delivery, unknown error) {
	untilDrained, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-e.opts.Drained:
			stop()
		case <-untilDrained.Done():
		}
	}()

	d, unknown = e.opts.Deliveries.Wait(untilDrained, id)
	if ctx.Err() != nil || unknown == nil && d.Tried() {
		return d, unknown
	}
	if name, known := e.sentTo(id); known && name != "" {
		if _, err := e.opts.Broker.Message(ctx, name, id); err == nil {
			return d, errDrained
		}
	}
	return e.opts.Deliveries.Wait(ctx, id)
}

// endingsSince is the start of the recorded endings, or zero if there are none or they were not searched.
func (e *environmentRoutes) unknownMessage(found foundID, endingsSince time.Time) error {
	historyStart := cmp.Or(e.opts.Deliveries.Since(), e.environment().StartedAt)
	if !endingsSince.IsZero() && endingsSince.Before(historyStart) {
		historyStart = endingsSince
	}
	return api.NotFound("no delivery of message "+strconv.Quote(found.id)+" is stored", e.whyUnknown(found, historyStart))
}

func (e *environmentRoutes) whyUnknown(found foundID, historyStart time.Time) string {
	isPast := "it left its queue before " + historyStart.UTC().Format("2006-01-02 15:04:05 UTC") +
		", when the history starts, or its ID is wrong"
	switch sentTo, known := e.sentTo(found.id); {
	case known && sentTo == "":
		return "its queue was deleted; 'tendril events' shows by whom"
	case known:
		return "unless it is waiting, " + isPast
	case found.hint != "":
		return found.hint
	case e.receivesElsewhere():
		return "unless it waits on Amazon SQS or another server, where messages cannot be looked up by ID, " + isPast
	}
	return isPast
}

const (
	minIDStart = 4
	idLength   = len("00000000-0000-0000-0000-000000000000")
)

// If by is another instance, searchTime is shorter than that instance waits for the response.
func searchTime(by caller) time.Duration {
	if by.peer {
		return api.PeerPatience / 2
	}
	return 3 * time.Second
}

type foundID struct {
	id    string
	queue string // queue with the message; "" if unknown
	hint  string
}

// fullID returns an error if the ID is ambiguous, or might be because not all messages were searched.
func (e *environmentRoutes) fullID(ctx context.Context, start string, within time.Duration) (foundID, error) {
	switch {
	case len(start) >= idLength:
		return foundID{id: start}, nil
	case len(start) < minIDStart:
		return foundID{id: start, hint: "type the whole ID, or at least " + strconv.Itoa(minIDStart) + " characters of it"}, nil
	}

	ids, name, complete, err := e.idsStartingWith(ctx, start, within)
	if err != nil {
		return foundID{}, err
	}

	found := foundID{id: start, queue: name}
	partly := "only some of the waiting messages were searched, for " + within.String()
	if !complete {
		found.hint = partly + ": type the whole ID"
	}
	switch {
	case len(ids) == 0 || slices.Contains(ids, start):
		return found, nil
	case len(ids) > 1:
		return found, api.Conflict("the IDs of several messages start with "+strconv.Quote(start),
			"type more of the ID, such as "+strings.Join(ids[:min(len(ids), maxSuggestions)], " or "))
	case !complete:
		return found, api.Conflict(partly, "type the whole ID, such as "+ids[0])
	}
	found.id = ids[0]
	return found, nil
}

// name is the queue of a stored message that matches, or ""; complete means that all messages were searched.
func (e *environmentRoutes) idsStartingWith(ctx context.Context, start string, within time.Duration) (ids []string, name string, complete bool, err error) {
	ids, err = e.recordedIDs(start)
	if err != nil {
		return nil, "", false, err
	}

	complete = true
	var stored []broker.Stored
	if e.opts.Broker != nil {
		stored, complete, err = e.opts.Broker.FindByID(ctx, start, maxSuggestions, within)
	}
	for i := range stored {
		ids = append(ids, stored[i].ID)
		name = stored[i].Queue
	}
	slices.Sort(ids)
	return slices.Compact(ids), name, complete, err
}

const maxSuggestions = 5

func (e *environmentRoutes) recordedIDs(start string) (ids []string, err error) {
	if e.opts.History.Endings != nil {
		if ids, err = e.opts.History.Endings.IDs(start, maxSuggestions); err != nil {
			return nil, err
		}
	}
	for _, d := range e.opts.Deliveries.Recent(0) {
		if strings.HasPrefix(d.MessageID, start) {
			ids = append(ids, d.MessageID)
		}
	}
	return ids, nil
}

func (e *environmentRoutes) receivesElsewhere() bool {
	return e.opts.Broker == nil || slices.ContainsFunc(e.environment().Workers, func(w api.Worker) bool {
		_, err := e.opts.Broker.Newest(w.Queue)
		return errors.Is(err, queue.ErrNoQueue)
	})
}

func (e *environmentRoutes) sentTo(id string) (name string, known bool) {
	if e.opts.Broker == nil {
		return "", false
	}
	return e.opts.Broker.SentTo(id)
}

// ending is how a message left its queue. delivery is zero if that is unknown; since is the start of the records.
type ending struct {
	delivery api.Delivery
	since    time.Time
}

func (e *environmentRoutes) endingOf(id string) (ending, error) {
	if e.opts.History.Endings == nil {
		return ending{}, nil
	}
	sentTo, _ := e.sentTo(id)
	found, since, err := e.opts.History.Endings.Find(id, sentTo)
	if err != nil || found.Outcome == "" {
		return ending{since: since}, err
	}

	var reason []string
	if found.MessageID == "" {
		reason = append(reason, "with all messages of the queue")
	}
	if found.To != "" {
		reason = append(reason, "to "+found.To)
	}
	if found.By != "" {
		reason = append(reason, "by "+found.By)
	}

	d := api.Delivery{MessageID: id, Queue: found.Queue, Outcome: found.Outcome, At: found.At, Attempt: found.Receives,
		ReceiveCount: found.Receives, Reason: strings.Join(reason, " ")}
	if found.Outcome == api.MessageDeadLettered {
		d.DeadLetterQueue = found.To
	}
	return ending{d, since}, nil
}

func (e *environmentRoutes) pause(c *call, why api.Reason) (api.Paused, error) {
	answer, err := e.opts.Receiving.Pause(c.ctx, c.name, why, c.caller.who)
	return answer, asConflict(err)
}

func (e *environmentRoutes) hookQuiet(c *call, why api.Reason) (api.Paused, error) {
	if e.opts.Receiving.Quiet == nil {
		return e.pause(c, why)
	}
	return api.Paused{Paused: true}, asConflict(e.opts.Receiving.Quiet(why.Reason))
}

func (e *environmentRoutes) resume(c *call, where api.Reason) (api.Paused, error) {
	answer, err := e.opts.Receiving.Resume(c.ctx, c.name, where.This)
	return answer, asConflict(err)
}

func (e *environmentRoutes) drain(c *call, body api.DrainRequest) (api.Drained, error) {
	wait, err := parseWait(body.Wait, api.MaxWait, 0)
	if err != nil {
		return api.Drained{}, err
	}
	return e.drainFor(c, wait)
}

// hookDrain reads the wait from the query, because some platforms' hooks cannot send a body.
func (e *environmentRoutes) hookDrain(c *call) (any, error) {
	wait, err := parseWait(c.query.Get("wait"), maxHookWait, api.MaxWait)
	if err != nil {
		return nil, err
	}
	return e.drainFor(c, wait)
}

func (e *environmentRoutes) drainFor(c *call, wait time.Duration) (api.Drained, error) {
	ctx, cancel := e.bounded(c.ctx, wait)
	defer cancel()
	err := e.opts.Drain(ctx)
	if err != nil && errors.Is(err, ctx.Err()) {
		return api.Drained{}, nil
	}
	return api.Drained{Drained: true}, err
}

func (e *environmentRoutes) deploy(c *call, body api.DeployRequest) (api.DeployResult, error) {
	if body.Path != "" && !filepath.IsAbs(body.Path) {
		return api.DeployResult{}, api.BadRequest("the path "+strconv.Quote(body.Path)+" is not absolute",
			"use an absolute path: the environment runs in another folder")
	}
	ctx, cancel := e.bounded(context.WithoutCancel(c.ctx), api.MaxDeploy)
	defer cancel()
	result, err := e.opts.Deploy(ctx, body.Path)
	return result, deployRefusal(err)
}

func deployRefusal(err error) error {
	var own *api.Error
	var failed *api.DeployError
	switch {
	case err == nil || errors.As(err, &own):
		return err
	case errors.As(err, &failed):
		return &api.Error{Status: http.StatusUnprocessableEntity, Message: err.Error(), Hint: hintAfter(failed),
			Switched: failed.Switched, Step: failed.Step, Output: failed.Output}
	case errors.Is(err, fs.ErrNotExist):
		return api.NotFound(err.Error(), "use a folder that the environment can read")
	}

	return api.Conflict(err.Error(), "'tendril status' shows the last deployment")
}

func hintAfter(failed *api.DeployError) string {
	switch {
	case failed.Aborted && !failed.Switched:
		return "the previous version is still serving"
	case failed.Stopped:
		return "the environment is stopping; redeploy once it runs again"
	case failed.Switched:
		return "the new version is serving; fix the problem and redeploy"
	}
	return "the previous version is still serving; fix the problem and redeploy"
}

func (e *environmentRoutes) reload(c *call) (api.ReloadResult, error) {
	ctx, cancel := e.bounded(context.WithoutCancel(c.ctx), api.MaxDeploy)
	defer cancel()
	done, err := e.opts.Reload(ctx)
	return done, reloadRefusal(err)
}

func reloadRefusal(err error) error {
	var wrong *periodic.Error
	var own *api.Error
	var failed *api.DeployError
	switch {
	case errors.As(err, &wrong):
		refusal := api.BadRequest("the task file was rejected; the current tasks stay in force", "")
		for _, p := range wrong.Problems {
			refusal.Details = append(refusal.Details, api.Detail{Text: p.String(), Hint: p.Hint})
		}
		return refusal
	case err == nil || errors.As(err, &own) || errors.As(err, &failed):
		return deployRefusal(err)
	}
	return api.Conflict(err.Error(), "'tendril status' shows the processes and the deployment in progress")
}
