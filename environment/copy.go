package environment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/app"
	"tendril/bundle"
	"tendril/config"
	"tendril/supervisor"
)

// version is what one deployment runs.
type version struct {
	// number is [Environment.nextVersion]'s.
	number int
	// bundle is nil for a command without a folder; command is empty when the
	// bundle's Procfile says what to run.
	bundle  *bundle.Bundle
	command []string
	// files is what was in the bundle's folder when its steps had run; read is what was
	// there of files that are read before, when they were.
	files, read map[string]string
	// configOnly tells that only settings differ from the version before.
	configOnly bool
	// change is how its settings differ from those in force before it.
	change config.Change
}

// String names a version for people.
func (v version) String() string {
	if v.bundle == nil {
		return fmt.Sprintf("version %d", v.number)
	}
	return fmt.Sprintf("version %d (%s)", v.number, v.bundle.Dir)
}

// launcher starts copies of the app for package app.
type launcher struct{ e *Environment }

// Address finds a port for a copy: the one of the settings where it is free.
func (l launcher) Address(version) (string, error) {
	e := l.e
	e.copyMu.Lock()
	defer e.copyMu.Unlock()
	port := e.s.Port
	has := func(c *appCopy) bool { return c.port == port } // maybe not listening yet
	for port == 0 || slices.ContainsFunc(e.copies, has) {
		var err error
		if port, err = supervisor.FreePort(); err != nil {
			return "", fmt.Errorf("finding a port for one more copy of the app: %w", err)
		}
	}
	c := &appCopy{e: e, port: port, number: e.freeNumber(), work: map[string]int{}, died: make(chan struct{}),
		failed: make(chan struct{})}
	e.copies = append(e.copies, c)
	return c.address(), nil
}

// freeNumber returns the smallest number that no copy has. It needs copyMu.
func (e *Environment) freeNumber() int {
	for n := 1; ; n++ {
		if !slices.ContainsFunc(e.copies, func(c *appCopy) bool { return c.number == n }) {
			return n
		}
	}
}

// Launch starts a copy of the app.
func (l launcher) Launch(ctx context.Context, v version, m *app.Member) (app.Replica, error) {
	c := l.e.copyAt(m.Address)
	c.member, c.version = m, v.number
	process, err := l.e.webProcess(v, c)
	if err == nil {
		c.app, err = supervisor.New([]supervisor.Process{process}, l.e.supervisorOptions(c))
	}
	if err == nil {
		err = c.app.Start(ctx)
	}
	if err != nil {
		l.e.dropCopy(c)
		return nil, err
	}
	return c, nil
}

// Helpers starts the processes of the Procfile other than web.
func (l launcher) Helpers(ctx context.Context, v version) (app.Replica, error) {
	processes := l.e.helperProcesses(v)
	if len(processes) == 0 {
		return nil, nil
	}
	app, err := supervisor.New(processes, l.e.supervisorOptions(nil))
	if err == nil {
		err = app.Start(ctx)
	}
	if err != nil {
		return nil, err
	}
	return app, nil
}

// appCopy is one running copy of the app.
type appCopy struct {
	e            *Environment
	port, number int
	version      int // its version's number
	member       *app.Member
	app          *supervisor.Supervisor
	said         lastLines

	mu       sync.Mutex
	stopping bool
	excuse   bool           // the last end was a message's doing, as it seems
	failure  error          // why it was given up
	failed   chan struct{}  // closed then
	ready    bool           // it was, at least once
	ends     int            // how often it ended by itself
	work     map[string]int // deliveries in work, by message id
	died     chan struct{}  // closed when the process ends by itself, then replaced
}

func (c *appCopy) address() string { return fmt.Sprintf("http://localhost:%d", c.port) }

// name is the process's: web, and web-2 and so on for further copies.
func (c *appCopy) name() string {
	if c.number == 1 {
		return bundle.MainProcess
	}
	return fmt.Sprintf("%s-%d", bundle.MainProcess, c.number)
}

// Failed is closed when the copy failed too often for the first time. It is
// tried again now and then all the same.
func (c *appCopy) Failed() <-chan struct{} { return c.failed }

// Err says why, after Failed.
func (c *appCopy) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// gaveUp notes why the copy failed too often.
func (c *appCopy) gaveUp(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.failure = err
		close(c.failed)
	}
}

// excused reports whether the end of the copy seems to be a message's doing: then
// it counts for nothing. Helpers, for which c is nil, have no messages.
func (c *appCopy) excused(string, supervisor.Exit) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.excuse && !c.e.finder.Broken()
}

// Stop ends the copy.
func (c *appCopy) Stop(ctx context.Context) error {
	c.mu.Lock()
	c.stopping = true
	c.mu.Unlock()
	err := c.app.Stop(ctx)
	c.e.dropCopy(c)
	return err
}

// begin notes that a message is in work, and returns what is closed when the
// copy dies.
func (c *appCopy) begin(id string) (died <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work[id]++
	return c.died
}

// end notes that a message is no longer in work.
func (c *appCopy) end(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.work[id]--; c.work[id] == 0 {
		delete(c.work, id)
	}
}

// exited tells the finder which messages a copy that ended by itself had in
// work, and those who deliver them that it died.
func (c *appCopy) exited(how supervisor.Exit, now time.Time) {
	c.mu.Lock()
	if c.stopping || c.e.stopping() {
		c.mu.Unlock()
		return
	}
	if c.ends++; c.ends == hopeless && !c.ready && c.failure == nil {
		c.failure = fmt.Errorf("%s ended %d times before it was ready: %s", c.name(), c.ends, how)
		close(c.failed)
	}
	var ids []string
	for id := range c.work {
		ids = append(ids, id)
	}
	c.excuse = len(ids) > 0
	died := c.died
	c.died = make(chan struct{})
	c.mu.Unlock()
	slices.Sort(ids)
	c.e.finder.Crashed(ids, now)
	close(died)
}

// wasReady notes that the copy takes requests.
func (c *appCopy) wasReady() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = true
}

// isStopping reports whether we asked the copy to end.
func (c *appCopy) isStopping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopping
}

// copyAt returns the copy that listens at an address; nil when there is none.
func (e *Environment) copyAt(address string) *appCopy {
	e.copyMu.Lock()
	defer e.copyMu.Unlock()
	for _, c := range e.copies {
		if c.address() == address {
			return c
		}
	}
	return nil
}

// dropCopy forgets a copy, and the connections to it.
func (e *Environment) dropCopy(c *appCopy) {
	e.copyMu.Lock()
	e.copies = slices.DeleteFunc(e.copies, func(other *appCopy) bool { return other == c })
	e.copyMu.Unlock()
	for _, l := range e.lines {
		if l.route != nil {
			l.route.drop(c.address())
		}
	}
}

// supervisorOptions are those of a copy, or of the helpers for nil.
func (e *Environment) supervisorOptions(c *appCopy) *supervisor.Options {
	return &supervisor.Options{
		Grace: max(e.s.AppGrace, time.Nanosecond), RestartMin: restartMin, RestartLimit: restartLimit(e.s.RestartLimit),
		RestartWindow: e.s.RestartWindow,
		KeepTrying:    true, RetryAfter: retryGivenUp, Excused: c.excused, Hurry: e.urgent,
		ReadyLateAfter: readyLate, LinesPerSecond: e.s.AppLogRate, Output: e.outputOf(c), Events: e.appEvents(c),
	}
}

const (
	// restartMin is the pause before a first restart; it doubles with each.
	restartMin = 100 * time.Millisecond
	// retryGivenUp is how often an app that was given up is tried once.
	retryGivenUp = time.Minute
	// readyLate is when a copy that does not pass its check is reported first.
	readyLate = 10 * time.Second
	// hopeless is after how many ends a copy that was never ready counts as one
	// that will not be.
	hopeless = 3
)

// appOutput takes one line of the app's output: to the log, and to the files of
// the log folder where there is one.
func (e *Environment) appOutput(process, stream string, line []byte) {
	if e.appLogs != nil {
		e.appLogs.Line(process, stream, line)
	}
	e.report.AppOutput(process, stream, line)
}

// outputOf is appOutput for a copy, or for the helpers for nil; a copy keeps its last
// lines.
func (e *Environment) outputOf(c *appCopy) func(process, stream string, line []byte) {
	if c == nil {
		return e.appOutput
	}
	return func(process, stream string, line []byte) {
		e.appOutput(process, stream, line)
		c.said.add(string(line))
	}
}

// openAppLogs opens the folder of the app's log files, where one is named.
func (e *Environment) openAppLogs() error {
	if e.s.AppLogDir == "" || e.appLogs != nil {
		return nil
	}
	logs, err := supervisor.NewLogFolder(e.s.AppLogDir, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	e.appLogs = logs
	e.steps.push("the app's log files", func(context.Context) error { return logs.Close() })
	return nil
}

// guarded gives a process the user and the limits of the settings.
func (e *Environment) guarded(p supervisor.Process) supervisor.Process {
	p.User, p.Limits = e.s.AppUser, map[string]string{}
	for _, limit := range e.s.AppLimit {
		name, value, _ := strings.Cut(limit, "=")
		p.Limits[name] = value
	}
	return p
}

// webProcess is the app of a version, to listen on the port of a copy.
func (e *Environment) webProcess(v version, c *appCopy) (supervisor.Process, error) {
	check, err := appCheck(e.s.Healthcheck, c.port)
	if err != nil {
		return supervisor.Process{}, err
	}
	web := supervisor.Process{Name: c.name(), Argv: v.command, Port: c.port, Check: check,
		Env: e.processEnvironment(v, c.port)}
	web = e.guarded(web)
	if v.bundle == nil {
		return web, nil
	}
	web.Dir = v.bundle.Dir
	if len(v.command) > 0 {
		return web, nil
	}
	main, err := v.bundle.Web()
	web.Shell = main.Command
	return web, err
}

// appCheck is how to see whether the copy of the app at a port is ready. The number in a
// health check stands for the port of each copy.
func appCheck(healthcheck string, port int) (supervisor.Check, error) {
	if healthcheck == "" {
		return supervisor.Check{Port: port}, nil
	}
	check, err := supervisor.ParseCheck(healthcheck)
	check.Port = port
	return check, err
}

// helperProcesses are the processes of a version that take no messages.
func (e *Environment) helperProcesses(v version) (list []supervisor.Process) {
	if v.bundle == nil || len(v.command) > 0 {
		return nil
	}
	for _, p := range v.bundle.Processes {
		if p.Name != bundle.MainProcess {
			list = append(list, e.guarded(supervisor.Process{Name: p.Name, Shell: p.Command, Dir: v.bundle.Dir,
				Env: e.processEnvironment(v, 0)}))
		}
	}
	return list
}

// processEnvironment is what a process of a version finds in its environment:
// what tendril itself was given, the properties and links of the bundle where
// nobody set them otherwise, and what is needed to listen and to enqueue.
func (e *Environment) processEnvironment(v version, port int) []string {
	env := e.AppEnv
	if v.bundle != nil {
		env = slices.Clone(env)
		for _, p := range v.bundle.Environment() {
			if !has(env, p.Name) {
				env = append(env, p.Name+"="+p.Value)
			}
		}
		for _, link := range v.bundle.Links {
			if l := e.linked(link); l != nil && !has(env, link.Variable) {
				env = append(env, link.Variable+"="+l.queue.url)
			}
		}
	}
	return appEnvironment(env, port, e.appQueue())
}

// linked returns the line whose queue a link of env.yaml means: the one of that
// name, or the first where it names this very environment; nil for another
// environment, whose queue is not known here.
func (e *Environment) linked(link bundle.Link) *line {
	var names []string
	for _, l := range e.lines {
		names = append(names, l.queue.name)
	}
	return e.lineOf(linkedQueue(e.s, names, link.Environment))
}

// restartLimit: a chosen 0 means never, which the supervisor says as -1.
func restartLimit(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// errNoCopy is the cause when nothing was delivered for want of an app.
var errNoCopy = errors.New("no copy of the app is ready")
