package environment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tendril/api"
	"tendril/internal/app"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/delivery"
	"tendril/internal/delivery/runtimeapi"
	"tendril/internal/supervisor"
)

type programs struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	queues   *queues
	work     *pipelines

	app      *app.App
	facts    *facts
	counters *supervisor.Events
	logs     *supervisor.LogFolder
	meter    supervisor.Meter
}

func (p *programs) build(c *changes, cron *schedule) {
	if !p.opts.HasApp() {
		return
	}
	counters := *p.counters
	counters.LinesDropped = p.linesDropped
	p.app = app.New(&app.Options{
		Settings: p.settings.now, Bundle: p.opts.Bundle, Command: p.opts.Command, Shared: p.opts.Shared, Environ: p.environ,
		Log: p.opts.log("app"), Output: p.output, Counters: counters,
		Hurry: p.life.urgent, Draining: p.life.draining, Ready: p.life.ready, Changing: c.changing, Gate: p.work.gate,
		Failed:       func(err error) { p.life.fail(fmt.Errorf("%w: %w", ErrAppFailed, err)) },
		DrainTimeout: p.work.drainLimit, Check: c.checkVersion, Change: c.loadChange, Apply: p.work.applySettings,
		Facts: p.facts, AdoptTasks: cron.adoptTasks, ClaimCommands: cron.claimCommands,
	})
}

func (p *programs) start(ctx context.Context, replicas int) error {
	if p.app == nil {
		return nil
	}
	if err := p.openLogs(); err != nil {
		return err
	}
	warnOfRoot(p.opts.Logger.Logger, p.settings.now(), p.opts.Bundle, isMachineRoot())
	p.life.onStop("the app", p.app.Stop)
	err := p.app.Start(ctx, replicas)
	if _, taken := errors.AsType[*supervisor.PortError](err); taken {
		return portConflict(err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAppFailed, err)
	}
	return nil
}

func (p *programs) shareBundle(context.Context) error {
	if p.opts.Bundle == nil {
		return nil
	}
	if err := app.Share(p.settings.now(), p.opts.Bundle.Dir, true); err != nil {
		return invalidSettings(err)
	}
	return nil
}

func (p *programs) forget(id string) {
	if p.app != nil {
		p.app.Forget(id)
	}
}

func (p *programs) openLogs() error {
	s := p.settings.now()
	if s.AppLogDir == "" || p.logs != nil {
		return nil
	}
	logs, err := supervisor.NewLogFolder(s.AppLogDir)
	if err != nil {
		return invalidSettings(err)
	}
	p.logs = logs
	p.life.closeOnStop("the app's log files", logs.Close)
	return nil
}

func (p *programs) output(process, stream string, line []byte) {
	if p.logs != nil {
		p.logs.Line(process, stream, line)
	}
	p.opts.Logger.AppOutput(process, stream, line)
}

func (p *programs) processes(all []supervisor.Status) (shown []api.Process) {
	var pids []int
	for i := range all {
		if all[i].PID > 0 {
			pids = append(pids, all[i].PID)
		}
	}

	usage := p.meter.Read(pids, time.Now())
	for i := range all {
		one := &all[i]
		c := api.Process{Name: one.Name, State: string(one.State), Role: p.app.Role(one.Name), PID: one.PID,
			Port: one.Port, Ready: one.Ready, Since: one.Since, Restarts: one.Restarts,
			Memory: usage[one.PID].Memory, CPUPercent: usage[one.PID].CPU}
		if !one.Ready {
			c.NotReady = one.Reason
		}
		if one.LastExit != nil {
			c.LastExit = one.LastExit.String()
		}
		shown = append(shown, c)
	}
	return shown
}

func (p *programs) linesDropped(d supervisor.LinesDropped) {
	p.counters.LinesDropped(d)
	if p.logs != nil {
		p.logs.LinesDropped(d)
	}
	hint := "the output could not be written fast enough"
	if d.TooFast {
		hint = fmt.Sprintf("the process exceeds --app-log-rate (%d lines per second)", p.settings.now().AppLogRate)
	}
	p.opts.log("app").Warn("output lines dropped", "process", d.Process, "stream", d.Stream, "lines", d.Lines,
		"hint", hint)
}

func (p *programs) environ(b *bundle.Bundle, port int) []string {
	home := p.queues.home()
	q := app.Queue{Region: home.settings().Region, URL: home.url, Name: home.name}
	if home.embedded {
		q.Endpoint = p.queues.appEndpoint
		q.AccessKeyID = p.queues.appKeys.AccessKeyID
		q.SecretAccessKey = string(p.queues.appKeys.SecretAccessKey)
	}
	return app.Environ(p.opts.AppEnv, b, p.linkedURL, port, q)
}

func (p *programs) linkedURL(link bundle.Link) string {
	if l := p.queues.named(linkedQueue(p.settings.now(), p.queues.names(), link.Environment)); l != nil {
		return l.url
	}
	return ""
}

func linkedQueue(s *config.Settings, queues []string, environment string) string {
	switch {
	case slices.Contains(queues, environment):
		return environment
	case len(queues) > 0 && (environment == s.Name || environment == s.EnvironmentName):
		return queues[0]
	}
	return ""
}

func (p *programs) startFunction(command string) (*runtimeapi.Pool, error) {
	s := p.settings.now()
	if err := refuseRoot(s, p.opts.Bundle, "the function", isMachineRoot()); err != nil {
		return nil, err
	}
	warnOfRoot(p.opts.Logger.Logger, s, p.opts.Bundle, isMachineRoot())
	if err := p.openLogs(); err != nil {
		return nil, err
	}

	events := delivery.LogFunction(p.opts.Logger.Logger, p.life.stopping)
	events.LinesDropped = func(d supervisor.LinesDropped) {
		d.Process = strings.Replace(d.Process, "-", ".", 1) // function-1 is function.1 in the log
		p.linesDropped(d)
	}
	opts := runtimeapi.Options{
		Command: []string{"/bin/sh", "-c", command}, Env: p.facts.Environ(p.environ(p.opts.Bundle, 0), startFacts, true),
		Instances: s.HTTPConnections, User: s.AppUser, Limits: app.Limits(s), Timeout: s.FunctionTimeout,
		Grace: max(s.AppGrace, time.Nanosecond), Hurry: p.life.urgent, Name: s.Name, Region: s.Region,
		AccountID: s.AccountID, LinesPerSecond: s.AppLogRate, Events: events,
		Output: func(instance int, stream string, text []byte) {
			p.output(fmt.Sprintf("function.%d", instance), stream, text)
		},
	}

	if p.opts.Bundle != nil {
		opts.Dir = p.opts.Bundle.Dir
	}
	pool, err := runtimeapi.New(opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAppFailed, err)
	}

	pool.Start()
	p.life.onStop("the function", pool.Stop)
	return pool, nil
}
