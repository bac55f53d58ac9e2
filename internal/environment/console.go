package environment

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"tendril/api"
	"tendril/internal/app"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/console/web"
	"tendril/internal/host/httplimit"
	"tendril/internal/observe/doctor"
)

func (e *Environment) startConsole(context.Context) error {
	s := e.settings.now()
	if s.Console == config.Off {
		return nil
	}
	l, err := e.instance.listen()
	if err != nil {
		return err
	}

	opts := e.consoleOptions()
	var server *console.Server
	opts.Handlers.Pages = web.New(web.Options{Logger: e.opts.Logger.Logger,
		Client: func(r *http.Request) *api.Client { return console.NewInProcessClient(server, r) }})
	server = console.New(opts)
	e.instance.login = server.Login
	if opts.Access.Anyone && !e.opts.Again {
		e.opts.log("console").Warn("console is open to all users and programs on this machine",
			"hint", "remove --console-auth none")
	}

	_, most := connectionShares(openFiles(), deliveryDescriptors(s))
	bodies := httplimit.NewBodies(sharesOf(e.opts.Memory).console, api.MaxBody)
	limits := httplimit.Limits{Connections: most, Bodies: bodies, Anonymous: server.Anonymous, Probe: console.IsProbe}
	e.life.serve(e.opts.Logger, "the console", console.HTTPServer(server), l, limits, server.Close)
	return nil
}

func (e *Environment) consoleOptions() *console.Options {
	s := e.settings.now()
	opts := &console.Options{
		Environment: s.Name, Version: e.opts.Version, Status: e.Status,
		Handlers: console.Handlers{Metrics: e.observe.telemetry.Handler()},
		Probes: console.Probes{Ready: e.observe.monitor.Ready, Live: e.observe.monitor.Live,
			Started: e.observe.monitor.Started},
		Receiving: console.Receiving{Pause: e.desired.pause, Resume: e.desired.resume, Quiet: e.hookQuiet},
		Broker:    e.queues.broker, History: e.observe.history.kept(),
		Deliveries: e.observe.shown, InWork: e.work.inWork, Token: e.instance.token, Logger: e.opts.Logger.Logger,
		Access: consoleAccess(s, e.observe.history.recordAction), Views: console.Views{Series: e.observe.curves.read},
		Drained: e.life.drained,
		Drain: func(ctx context.Context) error {
			err := e.life.Drain(ctx)
			if errors.Is(err, ErrLate) || errors.Is(err, ErrCutShort) {
				return &api.Error{Status: http.StatusInternalServerError, Message: err.Error(), Late: true}
			}
			return err
		},
	}
	opts.Settings.Describe = e.Describe
	opts.Settings.Examine = func(ctx context.Context) doctor.Examination { return examineRunning(ctx, e) }
	opts.Peers = e.members
	opts.Views.Instances = e.members.knownInstances
	if !e.opts.QueuesOnly {
		opts.Settings.Configuration = e.changes.configuration
		opts.Settings.PreviewChange = e.changes.previewChange
		opts.Settings.ChangeSettings = e.changes.changeSettings
		opts.Settings.ChangeScope = func(change api.SettingsChange) string { return scopeOf(change.Set) }
		opts.Views.Health = e.observe.report
		opts.Views.Scale = e.scale.scale
		opts.Views.ScaleDecisions = e.scale.scaleDecisions
		opts.Tasks = e.cron.console()
		opts.Reload = e.changes.reload
	}

	if e.opts.HasApp() {
		opts.Deploy = e.changes.DeployPath
		opts.Versions = console.VersionOptions{Versions: e.changes.versions, Rollback: e.changes.rollBack,
			AbortDeploy: e.changes.abort, RestartProcess: e.changes.restart}
	}
	return opts
}

// hookQuiet pauses all queues until this process exits, because the hook's caller is about to stop it.
func (e *Environment) hookQuiet(reason string) error {
	return e.work.quiet(cmp.Or(reason, pausedText))
}

func consoleAccess(s *config.Settings, audit func(console.Act)) console.Access {
	access := console.Access{
		Hosts: s.ConsoleHosts, Anyone: s.ConsoleAuth == config.ConsoleAuthNone, TokenDir: s.DataDir,
		DrainToken: s.ConsoleDrainToken, ReadOnly: s.ConsoleReadOnly,
		HideBodies: s.ConsoleBodies == config.ConsoleBodiesHidden, ClearText: s.ConsoleInsecure, Audit: audit,
	}
	for _, text := range s.ConsoleTrustedProxy {
		access.TrustedProxies = append(access.TrustedProxies, netip.MustParsePrefix(text)) // validated by config
	}
	return access
}

// Status describes the current state of the environment.
func (e *Environment) Status() api.Status {
	s := api.Status{StartedAt: e.instance.began, State: e.life.state(), Backend: api.BackendEmbedded}
	if e.settings.now().Backend == config.BackendSQS {
		s.Backend = api.BackendSQS
	}
	if !e.life.running() {
		return s
	}

	s.Workers, s.Limits = e.work.states(e.observe.curves.recorder.Rates(time.Now()))
	if home := e.queues.home(); home != nil && !home.embedded {
		s.QueueServer = config.OtherServer(home.url)
	}
	s.Queues = e.work.queuesOnSQS(s.Workers, time.Now())

	if e.cron.tasks != nil && e.cron.tasks.Any() {
		t := e.cron.tasks.Status()
		s.Tasks = &t
	}

	if e.programs.app != nil {
		s.App = e.programs.processes(e.programs.app.Processes())
		s.Deployment = e.programs.app.Deployment()
		if found := e.programs.app.Poison(); found != (app.PoisonStatus{}) {
			s.PoisonMessages = &api.PoisonMessages{
				Quarantined: found.Quarantined, Poison: found.Poison, Broken: found.Broken,
			}
		}
	}
	s.Scaling = e.scale.scalingStatus()
	return s
}
