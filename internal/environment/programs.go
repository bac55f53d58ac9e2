package environment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tendril/internal/app"
	"tendril/internal/bundle"
	"tendril/internal/bundle/getconfig"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/delivery"
	"tendril/internal/delivery/runtimeapi"
	"tendril/internal/supervisor"
)

// programs give what the user wrote, the app or a function, its variables, and take its output.
type programs struct {
	*pipelines
	counters *supervisor.Events
	logs     *supervisor.LogFolder // nil when no folder is named
	answers  getconfig.Folder      // of get-config, for what the user wrote
	meter    supervisor.Meter      // of what the app uses
}

func (p *programs) openLogs() error {
	if p.s.AppLogDir == "" || p.logs != nil {
		return nil
	}
	logs, err := supervisor.NewLogFolder(p.s.AppLogDir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	p.logs = logs
	p.steps.push("the app's log files", func(context.Context) error { return logs.Close() })
	return nil
}

func (p *programs) output(process, stream string, line []byte) {
	if p.logs != nil {
		p.logs.Line(process, stream, line)
	}
	p.Logger.AppOutput(process, stream, line)
}

// processes are the app's processes for the console, with what they use.
func (p *programs) processes(all []supervisor.Status) (shown []console.Process) {
	var pids []int
	for i := range all {
		if all[i].PID > 0 {
			pids = append(pids, all[i].PID)
		}
	}
	usage := p.meter.Read(pids, time.Now())
	for i := range all {
		one := &all[i]
		c := console.Process{Name: one.Name, State: string(one.State), PID: one.PID, Port: one.Port, Ready: one.Ready,
			Since: one.Since, Restarts: one.Restarts, Memory: usage[one.PID].Memory, CPUPercent: usage[one.PID].CPU}
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
		p.logs.Line(d.Process, d.Stream, fmt.Appendf(nil, "... %d lines dropped", d.Lines))
	}
	p.Logger.Warn("output lines dropped", "component", "app", "process", d.Process, "stream", d.Stream, "lines",
		d.Lines, "hint", fmt.Sprintf("the process writes faster than its lines can be printed; --app-log-rate is %d lines a "+
			"second", p.s.AppLogRate))
}

// environ is the environment of a process, which listens at a port unless that is 0.
func (p *programs) environ(b *bundle.Bundle, port int) []string {
	home := p.home()
	q := app.Queue{Region: home.settings().Region, URL: home.url, Name: home.name}
	if home.embedded {
		q.Endpoint, q.AccessKeyID, q.SecretAccessKey = p.appEndpoint, p.appKeys.AccessKeyID, string(p.appKeys.SecretAccessKey)
	}
	return app.Environ(p.AppEnv, b, p.linkedURL, port, q)
}

// linkedURL returns the URL of the queue that a link of env.yaml means; "" for that of
// another environment, which is not known here.
func (p *programs) linkedURL(link bundle.Link) string {
	if l := p.lineOf(linkedQueue(p.s, p.names(), link.Environment)); l != nil {
		return l.url
	}
	return ""
}

// linkedQueue returns which of the queues an environment's name means: the one of that name, or the
// first where it names this very environment; "" for none.
func linkedQueue(s *config.Settings, queues []string, environment string) string {
	switch {
	case slices.Contains(queues, environment):
		return environment
	case len(queues) > 0 && (environment == s.Name || environment == s.EnvironmentName):
		return queues[0]
	}
	return ""
}

// startFunction starts a function as the app's processes are: as whom, within which
// limits and with which variables the settings and the bundle say.
func (p *programs) startFunction(command string) (*runtimeapi.Pool, error) {
	if err := refuseRoot(p.s, p.Bundle, "the function", isMachineRoot()); err != nil {
		return nil, err
	}
	warnOfRoot(p.Logger.Logger, p.s, p.Bundle, isMachineRoot())
	if err := p.openLogs(); err != nil {
		return nil, err
	}
	process := app.Guard(p.s, supervisor.Process{})
	events := delivery.LogFunction(p.Logger.Logger, p.stopping)
	events.LinesDropped = func(d supervisor.LinesDropped) {
		d.Process = strings.Replace(d.Process, "-", ".", 1) // the name that its lines have
		p.linesDropped(d)
	}
	opts := runtimeapi.Options{
		Command: []string{"/bin/sh", "-c", command}, Env: p.answers.Environ(p.environ(p.Bundle, 0), startFacts, true),
		Instances: p.s.HTTPConnections,
		User:      process.User, Limits: process.Limits, Timeout: p.s.FunctionTimeout,
		Grace: max(p.s.AppGrace, time.Nanosecond), Hurry: p.urgent, Name: p.s.Name, Region: p.s.Region,
		AccountID: p.s.AccountID, LinesPerSecond: p.s.AppLogRate, Events: events,
		Output: func(instance int, stream string, text []byte) {
			p.output(fmt.Sprintf("function.%d", instance), stream, text)
		},
	}
	if p.Bundle != nil {
		opts.Dir = p.Bundle.Dir
	}
	pool, err := runtimeapi.New(opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAppFailed, err)
	}
	pool.Start()
	p.steps.push("the function", pool.Stop)
	return pool, nil
}
