package console

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"tendril/health"
	"tendril/periodic"
	"tendril/queue"
)

// shownProblems bounds the groups of failures in a status.
const shownProblems = 20

// getStatus answers after the queues were closed too: it then leaves them out.
func (s *Server) getStatus(*http.Request) (answer, error) {
	st := s.status()
	b := s.opts.Broker
	if b == nil {
		return ok(st), nil
	}
	queues, err := listQueues(b, st.Workers)
	if errors.Is(err, queue.ErrClosed) {
		return ok(st), nil
	}
	if err != nil {
		return answer{}, err
	}
	st.Queues, st.Ledger = queues, account(b.TotalLedger(), queues)
	return ok(st), nil
}

// environment is what only the environment knows.
func (s *Server) environment() Status {
	if s.opts.Status == nil {
		return Status{}
	}
	return s.opts.Status()
}

// status is everything but the embedded queues.
func (s *Server) status() Status {
	st := s.environment()
	st.Environment, st.Version, st.PID = s.opts.Environment, s.opts.Version, s.pid
	st.Backend = BackendSQS
	if s.opts.Broker != nil {
		st.Backend = BackendEmbedded
	}
	st.Checks, st.Ready = s.checks()
	if s.opts.Deliveries != nil {
		st.Problems = s.opts.Deliveries.Problems()
		st.Problems = st.Problems[:min(len(st.Problems), shownProblems)]
	}
	if st.Queues == nil {
		st.Queues = []Queue{}
	}
	if s.opts.Health != nil {
		r := s.health()
		st.Health = &r
	}
	return st
}

// health returns the report with a list of causes, even an empty one.
func (s *Server) health() health.Report {
	r := s.opts.Health()
	if r.Causes == nil {
		r.Causes = []string{}
	}
	return r
}

// getHealth is 200 whatever the status: it is a report, not a probe.
func (s *Server) getHealth(*http.Request) (answer, error) {
	if s.opts.Health == nil {
		return answer{}, refuse(http.StatusConflict,
			"nothing here judges how the environment does: this process serves queues only", "ask /readyz")
	}
	return ok(s.health()), nil
}

// getScale answers a scaler outside.
func (s *Server) getScale(*http.Request) (answer, error) {
	if s.opts.Scale == nil {
		return answer{}, refuse(http.StatusConflict, "nothing here works out a size: this process works on no queue",
			"ask where 'tendril up' runs")
	}
	return ok(s.opts.Scale()), nil
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks,omitempty"`
}

// probed is the answer of /livez and /startupz.
type probed struct {
	// Status is "ok", or "failed".
	Status string  `json:"status"`
	Checks []Check `json:"checks,omitempty"`
}

// livez says that the process works. It never asks the queue or the app: a
// restart would not fix those.
func (s *Server) livez(r *http.Request) (answer, error) { return probe(r, s.opts.Live) }

// startupz says that the start is over, whatever became of it later.
func (s *Server) startupz(r *http.Request) (answer, error) { return probe(r, s.opts.Started) }

func probe(r *http.Request, ask func() []Check) (answer, error) {
	checks, passed := all(ask)
	said := probed{"ok", worthSaying(r, checks)}
	if !passed {
		said.Status = "failed"
	}
	return answer{probeStatus(passed), said}, nil
}

// readyz is 200 when every check is OK and 503 when not. It lists the checks
// that are not, or all of them with ?verbose.
func (s *Server) readyz(r *http.Request) (answer, error) {
	checks, ready := s.checks()
	return answer{probeStatus(ready), readiness{ready, worthSaying(r, checks)}}, nil
}

func (s *Server) checks() (checks []Check, ready bool) { return all(s.opts.Ready) }

// all asks for checks, and reports whether every one is OK; without anybody to
// ask there are none.
func all(ask func() []Check) (checks []Check, passed bool) {
	if ask != nil {
		checks = slices.Clone(ask())
	}
	return checks, !slices.ContainsFunc(checks, func(c Check) bool { return !c.OK })
}

// worthSaying leaves out the checks that are OK, unless all were asked for.
func worthSaying(r *http.Request, checks []Check) []Check {
	if r.URL.Query().Has("verbose") {
		return checks
	}
	return slices.DeleteFunc(checks, func(c Check) bool { return c.OK })
}

func probeStatus(passed bool) int {
	if passed {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

// deliveryList is the answer of /api/v1/deliveries.
type deliveryList struct {
	Deliveries []Delivery `json:"deliveries"`
}

func (s *Server) deliveries() (*Deliveries, error) {
	if s.opts.Deliveries == nil {
		return nil, refuse(http.StatusConflict, "this process delivers nothing: it serves queues only",
			"outcomes are known where 'tendril up' runs")
	}
	return s.opts.Deliveries, nil
}

func (s *Server) getDeliveries(r *http.Request) (answer, error) {
	ds, err := s.deliveries()
	if err != nil {
		return answer{}, err
	}
	limit, err := count(r.URL.Query().Get("limit"), 1, DefaultDeliveries)
	if limit == 0 {
		limit = 100
	}
	return ok(deliveryList{ds.Recent(limit)}), err
}

// getOutcome answers with the most recent delivery of a message. With wait it
// waits for the end of the first one; without it in time it is the attempt that is
// in work, or else 404.
func (s *Server) getOutcome(r *http.Request) (answer, error) {
	ds, err := s.deliveries()
	if err != nil {
		return answer{}, err
	}
	wait, err := waitTime(r.URL.Query().Get("wait"))
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := s.bounded(r.Context(), wait)
	defer cancel()
	d, err := ds.Wait(ctx, r.PathValue("id"))
	if (err != nil || !d.Tried()) && s.opts.InWork != nil {
		if d, inWork := s.opts.InWork(r.PathValue("id")); inWork {
			return ok(d), nil
		}
	}
	if err != nil {
		return answer{}, refuse(http.StatusNotFound,
			"no delivery of message "+strconv.Quote(r.PathValue("id"))+" is remembered",
			"ask again with ?wait=20s; the message may still wait its turn")
	}
	return ok(d), nil
}

// waitTime reads a duration of 0 to MaxWait; "" is 0.
func waitTime(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > MaxWait {
		return 0, refuse(http.StatusBadRequest, "wait "+strconv.Quote(text)+" is out of range",
			"use a duration from 0s to "+MaxWait.String())
	}
	return wait, nil
}

// bounded returns a context that ends with the request, after wait, or when
// the server is closed.
func (s *Server) bounded(parent context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, wait)
	go func() {
		select {
		case <-s.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// MaxDeploy is the longest that one deployment may take, the last delivery of
// the old version included.
const MaxDeploy = 15 * time.Minute

// DeployResult is a deployment that went well.
type DeployResult struct {
	// From and To name the version that served before and the one that serves
	// now, for people.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// DurationMS is how long it took until the old version was gone, in
	// milliseconds.
	DurationMS int64 `json:"duration_ms"`
	// Later names the settings that changed with it and wait for the next start.
	Later []string `json:"later,omitempty"`
}

// DeployError is a deployment that was begun and went wrong.
type DeployError struct {
	// Switched tells that the new version has the messages all the same: what
	// failed came after. Otherwise the previous version is still serving.
	Switched bool
	// Stopped tells that it ended since the environment stops, and no version is serving.
	Stopped bool
	// Step names the hook, the build command or the process that failed; "" when
	// it was none of them. Output holds the last lines that it wrote.
	Step   string
	Output []string
	// Err is the cause.
	Err error
}

// Error returns the cause's text.
func (e *DeployError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DeployError) Unwrap() error { return e.Err }

// deployment is the body of a deploy.
type deployment struct {
	// Path is that of a folder or an archive; "" is what runs now.
	Path string `json:"path"`
}

// postDeploy answers when the deployment is over: 200 when the new version
// serves and the old one is gone, 422 when it went wrong, 409 when it could not
// be begun. It goes on when the caller goes away.
func (s *Server) postDeploy(r *http.Request) (answer, error) {
	if s.opts.Deploy == nil {
		return answer{}, refuse(http.StatusConflict, "this environment runs no app whose version could change",
			"start it with 'tendril up DIR'")
	}
	var body deployment
	if err := readBody(r, &body); err != nil {
		return answer{}, err
	}
	if body.Path != "" && !filepath.IsAbs(body.Path) {
		return answer{}, refuse(http.StatusBadRequest, "the path "+strconv.Quote(body.Path)+" is not absolute",
			"name the folder from the root: the environment works in another one than you")
	}
	ctx, cancel := s.bounded(context.WithoutCancel(r.Context()), MaxDeploy)
	defer cancel()
	result, err := s.opts.Deploy(ctx, body.Path)
	return ok(result), deployRefusal(err)
}

// deployRefusal says what an error of [Options].Deploy means to the caller.
func deployRefusal(err error) error {
	var own *Error
	var failed *DeployError
	switch {
	case err == nil || errors.As(err, &own):
		return err
	case errors.As(err, &failed):
		hint := "the previous version is still serving; fix the problem and redeploy"
		if failed.Switched {
			hint = "the new version is serving; fix the problem and redeploy"
		}
		if failed.Stopped {
			hint = "the environment stops; deploy again when it runs again"
		}
		return &Error{Status: http.StatusUnprocessableEntity, Message: err.Error(), Hint: hint, Switched: failed.Switched,
			Step: failed.Step, Output: failed.Output}
	case errors.Is(err, fs.ErrNotExist):
		return refuse(http.StatusNotFound, err.Error(), "name a folder that the environment can read")
	}
	return refuse(http.StatusConflict, err.Error(), "'tendril status' shows what is under way")
}

// ReloadResult says what a reload did. The zero value is a reload after which
// everything is as it was.
type ReloadResult struct {
	// File is the file of periodic tasks that was read, Tasks how many of them are
	// in force now; "" and 0 when none was read.
	File  string `json:"file,omitempty"`
	Tasks int    `json:"tasks"`
	// NotScheduled says why those tasks are not in force; "" when they are.
	NotScheduled string `json:"notScheduled,omitempty"`
	// Deployed is what took the place of the app's version that ran, since files
	// of it had changed; nil when the app runs on.
	Deployed *DeployResult `json:"deployed,omitempty"`
	// Settings names the settings that changed and are in force now, Later those
	// that wait for the next start.
	Settings []string `json:"settings,omitempty"`
	Later    []string `json:"later,omitempty"`
	// Unchanged is the folder in which nothing had changed; "" when something was
	// reloaded.
	Unchanged string `json:"unchanged,omitempty"`
}

// postReload puts in force what changed, or refuses it with everything that is
// wrong. It goes on when the caller goes away, as a deployment does.
func (s *Server) postReload(r *http.Request) (answer, error) {
	reload := s.opts.Reload
	if reload == nil {
		t, err := s.tasks()
		if err != nil {
			return answer{}, err
		}
		reload = t.reload
	}
	if err := readBody(r, &struct{}{}); err != nil {
		return answer{}, err
	}
	ctx, cancel := s.bounded(context.WithoutCancel(r.Context()), MaxDeploy)
	defer cancel()
	done, err := reload(ctx)
	return ok(done), reloadRefusal(err)
}

// reload reads the tasks again, for an environment that has nothing else to
// reload.
func (t *TaskOptions) reload(context.Context) (ReloadResult, error) {
	if err := t.Reload(); err != nil {
		return ReloadResult{}, err
	}
	st := t.Status()
	return ReloadResult{File: st.File, Tasks: len(st.Tasks)}, nil
}

// reloadRefusal says what an error of a reload means to the caller.
func reloadRefusal(err error) error {
	var wrong *periodic.Error
	var own *Error
	var failed *DeployError
	switch {
	case errors.As(err, &wrong):
		refusal := refuse(http.StatusBadRequest, "the file of tasks is refused; the tasks in force stay as they are", "")
		for _, p := range wrong.Problems {
			refusal.Details = append(refusal.Details, Detail{p.String(), p.Hint})
		}
		return refusal
	case err == nil || errors.As(err, &own) || errors.As(err, &failed):
		return deployRefusal(err)
	}
	return refuse(http.StatusConflict, err.Error(), "'tendril status' shows what runs and what is under way")
}

// maxHookWait is the longest that a hook waits for a drain: as long as a
// platform gives a stop at most.
const maxHookWait = 15 * time.Minute

// drained is the answer of a drain.
type drained struct {
	// Drained is whether all work is settled and the process is ending.
	Drained bool `json:"drained"`
}

// postDrain begins a drain and waits for its end. It is 200 when drained and
// 202 when the drain goes on.
func (s *Server) postDrain(r *http.Request) (answer, error) {
	if s.opts.Drain == nil {
		return answer{}, noDrain()
	}
	var body struct {
		Wait string `json:"wait"`
	}
	if err := readBody(r, &body); err != nil {
		return answer{}, err
	}
	wait, err := waitTime(body.Wait)
	if err != nil {
		return answer{}, err
	}
	return s.drain(r, wait)
}

// hookDrain is postDrain for who can say nothing but a path, such as a hook
// that a platform calls before it stops the app: it returns when nothing is in
// work, or after ?wait, [MaxWait] unless told.
func (s *Server) hookDrain(r *http.Request) (answer, error) {
	if s.opts.Drain == nil {
		return answer{}, noDrain()
	}
	wait := MaxWait
	if text := r.URL.Query().Get("wait"); text != "" {
		var err error
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 || wait > maxHookWait {
			return answer{}, refuse(http.StatusBadRequest, "wait "+strconv.Quote(text)+" is out of range",
				"use a duration from 0s to "+maxHookWait.String())
		}
	}
	return s.drain(r, wait)
}

func noDrain() error {
	return refuse(http.StatusConflict, "this process cannot be drained", "end it with the signal TERM")
}

func (s *Server) drain(r *http.Request, wait time.Duration) (answer, error) {
	ctx, cancel := s.bounded(r.Context(), wait)
	defer cancel()
	err := s.opts.Drain(ctx)
	switch {
	case err == nil:
		return ok(drained{true}), nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return answer{http.StatusAccepted, drained{false}}, nil
	default:
		return answer{}, err
	}
}
