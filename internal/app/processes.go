package app

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/observe/event"
	"tendril/internal/supervisor"
)

// RetryGivenUp is the interval between restarts of an app that has failed too often.
const RetryGivenUp = time.Minute

const (
	restartMin = 100 * time.Millisecond
	readyLate  = 10 * time.Second
)

// Guard returns p with the configured user and limits.
func Guard(s *config.Settings, p supervisor.Process) supervisor.Process {
	p.User, p.Limits = s.AppUser, Limits(s)
	return p
}

// Limits returns the configured resource limits by name.
func Limits(s *config.Settings) map[string]string {
	limits := map[string]string{}
	for _, limit := range s.AppLimit {
		name, value, _ := strings.Cut(limit, "=")
		limits[name] = value
	}
	return limits
}

type processLauncher struct {
	opts     *Options
	detector *detector
	pid      *pidFile
	gaveUp   func(*replica, *supervisor.FailedError)
}

func (s *processLauncher) launch(ctx context.Context, v version, r *replica) (processes, error) {
	check, err := checkOf(s.opts.Settings().Healthcheck, r.port)
	if err != nil {
		return nil, err
	}
	web := Guard(s.opts.Settings(), supervisor.Process{Name: r.name(), Argv: v.command, Dir: v.dir(), Port: r.port,
		Check: check, Env: s.opts.processEnviron(v, r.port, true)})
	if v.isFromBundle() {
		main, err := v.bundle.Web()
		if err != nil {
			return nil, err
		}
		web.Shell = main.Command
	}
	return s.start(ctx, []supervisor.Process{web}, r)
}

func (s *processLauncher) helpers(ctx context.Context, v version) (processes, error) {
	if !v.isFromBundle() {
		return nil, nil
	}
	var list []supervisor.Process
	for _, p := range v.bundle.Processes {
		if p.Name != bundle.MainProcess {
			list = append(list, Guard(s.opts.Settings(), supervisor.Process{Name: p.Name, Shell: p.Command, Dir: v.bundle.Dir,
				MayFinish: true, Env: s.opts.processEnviron(v, 0, true)}))
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return s.start(ctx, list, nil)
}

func (s *processLauncher) start(ctx context.Context, list []supervisor.Process, r *replica) (processes, error) {
	settings := s.opts.Settings()
	opts := &supervisor.Options{
		Grace: settings.AppGrace, RestartMin: restartMin, RestartLimit: settings.RestartLimit,
		RestartWindow: settings.RestartWindow, RetryAfter: RetryGivenUp, Hurry: s.opts.Hurry, ReadyLateAfter: readyLate,
		LinesPerSecond: settings.AppLogRate, Output: s.opts.Output, Events: s.events(r),
	}
	// The supervisor replaces 0 with its defaults.
	opts.Grace = max(opts.Grace, time.Nanosecond)
	opts.RestartLimit = cmp.Or(opts.RestartLimit, -1)

	if r != nil {
		opts.Excused = func(string, supervisor.Exit) bool { return s.excused(r) }
		opts.Output = func(process, stream string, line []byte) {
			s.opts.Output(process, stream, line)
			r.output.add(string(line))
		}
	}

	all, err := supervisor.New(list, opts)
	if err == nil {
		err = all.Start(ctx)
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (s *processLauncher) excused(r *replica) bool {
	return r.causedByMessage.Load() && !s.detector.isBroken()
}

func checkOf(healthcheck string, port int) (supervisor.Check, error) {
	if healthcheck == "" {
		return supervisor.Check{Port: port}, nil
	}
	check, err := supervisor.ParseCheck(healthcheck)
	check.Port = port
	return check, err
}

func (s *processLauncher) isSameApp(v, next version) bool {
	return slices.Equal(v.bundle.Processes, next.bundle.Processes) &&
		slices.Equal(s.opts.Environ(v.bundle, 0), s.opts.Environ(next.bundle, 0))
}

// r is nil for the helpers.
func (s *processLauncher) events(r *replica) supervisor.Events {
	events := supervisor.Events{
		Started:      func(e supervisor.Started) { s.started(r, e) },
		ReadyLate:    s.logReadyLate,
		NotReady:     s.logNotReady,
		Exited:       func(e supervisor.Exited) { s.exited(r, e) },
		Restarting:   s.restarting,
		GaveUp:       func(e supervisor.GaveUp) { s.opts.Counters.GaveUp(e); s.gaveUp(r, e.Err) },
		Killed:       s.logKilled,
		LinesDropped: s.opts.Counters.LinesDropped,
	}
	if r != nil {
		events.Ready = s.logReady
		events.Ended = func(supervisor.Ended) { s.ended(r) }
		events.Gate = func(e supervisor.Gate) { r.setReady(e.Open, e.Reason) }
	}
	return events
}

func (s *processLauncher) logReadyLate(e supervisor.ReadyLate) {
	s.opts.Log.Warn("process still not ready", "process", e.Process, "duration_ms", e.After.Milliseconds(), "reason", e.Reason)
}

func (s *processLauncher) logNotReady(e supervisor.NotReady) {
	s.opts.Log.Debug("process not ready", "process", e.Process, "reason", e.Reason)
}

func (s *processLauncher) logKilled(e supervisor.Killed) {
	s.opts.Log.Warn("process killed", "process", e.Process, "pid", e.PID, "reason", e.Reason)
}

func (s *processLauncher) logReady(e supervisor.Ready) {
	s.opts.Log.Info("process ready", "process", e.Process, "duration_ms", e.After.Milliseconds())
}

// Deliveries wait only briefly for the exit, so it is recorded before the process's descendants have exited.
func (s *processLauncher) ended(r *replica) {
	if r.wasReady.Load() && !s.isStopping(r) {
		r.recordExit(func(messages []delivered) { s.detector.crashed(messages, time.Now()) })
	}
}

func (s *processLauncher) isStopping(r *replica) bool {
	return s.opts.stopping() || r != nil && r.stopping.Load()
}

func (s *processLauncher) started(r *replica, e supervisor.Started) {
	level := slog.LevelInfo // helpers have no readiness
	if r != nil {
		s.pid.started(r, e.PID)
		level = slog.LevelDebug
	}
	s.opts.Log.Log(context.Background(), level, "process started", "process", e.Process, "pid", e.PID)
}

func (s *processLauncher) exited(r *replica, e supervisor.Exited) {
	s.opts.Counters.Exited(e)
	if r != nil {
		s.pid.ended(r)
		if !r.wasReady.Load() && !s.isStopping(r) {
			r.countEarlyExit(e.Exit)
		}
	}
	s.logExit(r, e)
}

func (s *processLauncher) logExit(r *replica, e supervisor.Exited) {
	level := slog.LevelWarn
	switch {
	case s.isStopping(r), e.Restart:
		level = slog.LevelDebug
	case r == nil && e.Exit.Code == 0:
		level = slog.LevelInfo
	}
	event.Health.Log(s.opts.Log, level, "process exited", "process", e.Process, "pid", e.PID, "reason", e.Exit.String())
}

func (s *processLauncher) restarting(e supervisor.Restarting) {
	s.opts.Counters.Restarting(e)
	switch {
	case e.OnTrial:
	case e.Excused:
		s.opts.Log.Info("process restarting", "process", e.Process, "retry_in_ms", e.Delay.Milliseconds())
	default:
		s.opts.Log.Warn("process restarting", "process", e.Process, "retry_in_ms", e.Delay.Milliseconds(),
			"failures", e.Failures, "restart_limit", e.Limit)
	}
}
