package environment

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"

	"tendril/internal/app"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/console/web"
	"tendril/internal/cron/tasks"
	"tendril/internal/host/httplimit"
	"tendril/internal/observe/doctor"
)

// startConsole opens the console's listener early, so that it can show the
// start, and closes it late, so that it can show the drain.
func (e *Environment) startConsole(context.Context) error {
	if e.s.Console == config.Off {
		return nil
	}
	l, err := e.instance.listen()
	if err != nil {
		return err
	}
	opts := &console.Options{
		Environment: e.s.Name, Version: e.Version, Status: e.Status,
		Handlers:  console.Handlers{Metrics: e.telemetry.Handler()},
		Probes:    console.Probes{Ready: e.monitor.Ready, Live: e.monitor.Live, Started: e.monitor.Started},
		Receiving: console.Receiving{Pause: e.pause, Resume: e.resume, Quiet: e.hookQuiet},
		Broker:    e.broker, History: e.history.kept(),
		Deliveries: e.shown, InWork: e.inWork, Token: e.instance.token, Logger: e.Logger.Logger,
		Access: consoleAccess(e.s, e.history.acted), Views: console.Views{Series: e.curves.read},
		Drain: func(ctx context.Context) error {
			err := e.Drain(ctx)
			if errors.Is(err, ErrLate) || errors.Is(err, ErrCutShort) {
				return &console.Error{Status: http.StatusInternalServerError, Message: err.Error(), Late: true}
			}
			return err
		},
	}
	opts.Describe = e.Describe
	opts.Examine = func(ctx context.Context) doctor.Examination { return examineRunning(ctx, e) }
	opts.Instances = (&knownInstances{e.sizing, e.instance, e.Status}).list
	if !e.QueuesOnly {
		opts.Configuration, opts.PreviewChange, opts.ChangeSettings = e.configuration, e.previewChange, e.changeSettings
		opts.ChangeScope = func(change console.SettingsChange) string { return scopeOf(change.Set) }
		opts.Health, opts.Scale, opts.Tasks = e.monitor.Report, e.scale, e.taskOptions()
		opts.ScaleDecisions = e.scaleDecisions
		opts.Reload = func(ctx context.Context) (console.ReloadResult, error) {
			done, err := e.reloadChanged(ctx)
			if why := refusal(err); why != "" {
				e.Logger.Warn("reload refused", "component", "app", "err", why)
			}
			return done, err
		}
	}
	if e.HasApp() {
		opts.Deploy = func(ctx context.Context, path string) (console.DeployResult, error) {
			done, err := e.DeployPath(ctx, path)
			if why := refusal(err); why != "" {
				e.Logger.Warn("deployment refused", "component", "app", "err", why)
			}
			return done, err
		}
		opts.Versions, opts.AbortDeploy, opts.RestartProcess = e.app.Versions, e.app.Abort, e.restart
		opts.Rollback = func(ctx context.Context, number int) (console.DeployResult, error) {
			done, err := e.rollBack(ctx, number)
			if why := refusal(err); why != "" {
				e.Logger.Warn("deployment refused", "component", "app", "err", why)
			}
			return done, err
		}
	}
	var server *console.Server
	opts.Pages = web.New(web.Options{Logger: e.Logger.Logger,
		Client: func(r *http.Request) *console.Client { return console.NewInProcessClient(server, r) }})
	server = console.New(opts)
	e.instance.login = server.Login
	if opts.Anyone {
		e.Logger.Warn("console open to every user and program of this machine", "component", "console",
			"hint", "leave out --console-auth none")
	}
	_, most := connectionShares(openFiles(), deliveryDescriptors(e.s))
	limits := httplimit.Limits{Connections: most, Bodies: httplimit.NewBodies(sharesOf(e.Memory).console, console.MaxBody),
		Anonymous: server.Anonymous, Probe: console.IsProbe}
	e.serve("the console", console.HTTPServer(server), l, limits, server.Close)
	return nil
}

// hookQuiet pauses every queue until this process ends: who sends the webhook is about to end it.
func (e *Environment) hookQuiet(reason string) error {
	reason = cmp.Or(reason, pausedText)
	err := e.pauseAll(reason)
	if err == nil {
		e.Logger.Info("all queues paused", "component", "worker", "reason", reason,
			"hint", "type 'tendril queues resume', or restart the environment")
	}
	return err
}

// consoleAccess is who may use the console, as the settings say.
func consoleAccess(s *config.Settings, audit func(console.Act)) console.Access {
	access := console.Access{
		Hosts: s.ConsoleHosts, Anyone: s.ConsoleAuth == config.ConsoleAuthNone, TokenDir: s.DataDir,
		DrainToken: s.ConsoleDrainToken, ReadOnly: s.ConsoleReadOnly, HideBodies: s.ConsoleBodies == config.ConsoleBodiesHidden,
		ClearText: s.ConsoleInsecure, Audit: audit,
	}
	for _, text := range s.ConsoleTrustedProxy {
		access.TrustedProxies = append(access.TrustedProxies, netip.MustParsePrefix(text)) // as config wrote it
	}
	return access
}

func (e *Environment) taskOptions() *console.TaskOptions {
	started := func(do func(m *tasks.Manager) error) error {
		if !e.running() {
			return errStarting
		}
		return do(e.tasks)
	}
	return &console.TaskOptions{
		Any: func() bool { return e.CronFile() != "" || e.running() && e.tasks.Any() },
		Status: func() console.TasksStatus {
			if !e.running() {
				return console.TasksStatus{File: e.CronFile(), Off: errStarting.Error()}
			}
			return e.tasks.Status()
		},
		History: func(name string) []console.TaskRun {
			if !e.running() {
				return nil
			}
			return e.tasks.History(name)
		},
		Run: func(ctx context.Context, name string) (run console.TaskRun, err error) {
			err = started(func(m *tasks.Manager) (err error) { run, err = m.Run(ctx, name); return err })
			return run, err
		},
		Pause: func(ctx context.Context, name, reason string) error {
			return started(func(m *tasks.Manager) error { return m.Pause(ctx, name, reason) })
		},
		Resume: func(ctx context.Context, name string) error {
			return started(func(m *tasks.Manager) error { return m.Resume(ctx, name) })
		},
	}
}

// Status is what the environment says about itself now.
func (e *Environment) Status() console.Status {
	s := console.Status{StartedAt: e.instance.began, State: console.StateRunning, Backend: console.BackendEmbedded}
	if e.s.Backend == config.BackendSQS {
		s.Backend = console.BackendSQS
	}
	if !e.running() {
		s.State = console.StateStarting
		return s
	}
	if e.stopping() {
		s.State = console.StateDraining
	}
	named := map[string]bool{} // targets with a limit
	for _, l := range e.lines {
		s.Workers = append(s.Workers, l.status())
		if !l.embedded {
			s.Queues = append(s.Queues, console.Queue{Name: l.name, URL: l.url, FIFO: l.fifo, DeadLetterQueue: l.dead})
		}
		target := l.goesTo()
		if l.limiter == nil || named[target] {
			continue
		}
		named[target] = true
		st := l.limiter.Status()
		s.Limits = append(s.Limits, console.Limit{
			Target: target, Rate: st.Rate, InWork: st.InWork, Concurrency: cmp.Or(st.SlowStart, st.Limit), Breaker: st.Breaker,
			TrialAt: st.TrialAt, Failing: st.Failing, Refused: st.Refused.Rate + st.Refused.Concurrency + st.Refused.Breaker,
		})
	}
	if e.tasks != nil && e.tasks.Any() {
		t := e.tasks.Status()
		s.Tasks = &t
	}
	if e.app != nil {
		s.App = e.programs.processes(e.app.Processes())
		s.Deployment = e.app.Deployment()
		if found := e.app.Poison(); found != (app.PoisonStatus{}) {
			s.PoisonMessages = &console.PoisonMessages{
				Quarantined: found.Quarantined, Poison: found.Poison, Broken: found.Broken,
			}
		}
	}
	s.Scaling = e.scalingStatus()
	return s
}
