package environment

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"tendril/config"
	"tendril/console"
	"tendril/datadir"
	"tendril/httplimit"
	"tendril/logging"
)

// claimData makes this process the one that the other commands find in the data
// directory. The embedded queues have a lock of their own there; an environment
// without any may not take the files of another one either.
func (e *Environment) claimData(context.Context) error {
	if e.s.Console == config.Off && e.broker == nil {
		return nil // no file is written
	}
	if err := datadir.Make(e.s.DataDir); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	release, err := console.Claim(e.s.DataDir)
	if errors.Is(err, console.ErrClaimed) {
		advice := "give this one its own --data-dir"
		if e.broker == nil {
			advice += ", or --console off"
		}
		return conflict(fmt.Errorf("%w; %s", err, advice))
	}
	if err != nil {
		return err
	}
	e.steps.push("the claim of the data directory", func(context.Context) error { return release() })
	e.closeVersions()
	return nil
}

// startConsole opens the console's listener early, so that it can show the
// start, and closes it late, so that it can show the drain.
func (e *Environment) startConsole(context.Context) error {
	if e.s.Console == config.Off {
		return nil
	}
	l, err := e.listenConsole()
	if err != nil {
		return err
	}
	e.address = localAddress(l)
	if e.s.ConsoleTLSCert != "" {
		if l, err = e.encrypt(l); err != nil {
			return err
		}
	}
	if e.token = e.s.ConsoleToken; e.token == "" {
		e.token = console.NewToken()
	}
	opts := &console.Options{
		Environment: e.s.Name, Version: e.Version, Status: e.Status, Ready: e.monitor.Ready, Live: e.monitor.Live,
		Started: e.monitor.Started,
		Metrics: e.telemetry.Handler(), Pause: e.pause, Deploy: e.deployer(), Reload: e.reloader(), Resume: e.resume,
		Drain: e.drainForConsole,
		Tasks: e.taskOptions(), Broker: e.broker, Deliveries: e.shown, InWork: e.inWork, Token: e.token,
		Hosts: e.s.ConsoleHosts, Logger: e.Logger.Logger,
	}
	if !e.QueuesOnly {
		opts.Health, opts.Scale = e.monitor.Report, e.scale
	}
	server := console.New(opts)
	_, most := connectionShares(openFiles(), deliveryDescriptors(e.s))
	limited := httplimit.NewBodies(consoleBodies, console.MaxBody).Handler(server)
	e.servers.serve("the console", console.HTTPServer(limited), l, most, server.Close)
	return nil
}

// listenConsole binds the console's address.
func (e *Environment) listenConsole() (net.Listener, error) {
	return listen("console", e.s.Console, e.s.ConsoleTLSCert == "" && !e.s.ConsoleInsecure)
}

// encrypt has the console's listener speak TLS, with a certificate that the other
// commands know from the instance file.
func (e *Environment) encrypt(l net.Listener) (net.Listener, error) {
	certificate, err := console.OpenCertificate(e.s.ConsoleTLSCert, e.s.ConsoleTLSKey, console.CertificateEvents{
		Changed: e.certificateChanged,
		Rejected: func(err error) {
			e.Logger.Error("certificate not replaced", "component", "console", "err", err)
		},
	})
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("%w: --console-tls-cert: %w", ErrSettings, err)
	}
	e.instanceFile.certificate = certificate.Fingerprint()
	return tls.NewListener(l, certificate.TLSConfig()), nil
}

// certificateChanged writes the instance file anew, where it is written already.
func (e *Environment) certificateChanged(fingerprint string) {
	e.instanceFile.mu.Lock()
	defer e.instanceFile.mu.Unlock()
	e.instanceFile.certificate = fingerprint
	if !e.instanceFile.written {
		return
	}
	if err := e.instance().Write(e.s.DataDir); err != nil {
		e.Logger.Error("writing the instance file failed", "component", "console", "err", err)
		return
	}
	e.Logger.Info("certificate replaced", "component", "console")
}

// drainForConsole is Drain, which tells the caller of the console when work was cut
// off.
func (e *Environment) drainForConsole(ctx context.Context) error {
	err := e.Drain(ctx)
	if errors.Is(err, ErrLate) || errors.Is(err, ErrCutShort) {
		return &console.Error{Status: http.StatusInternalServerError, Message: err.Error(), Late: true}
	}
	return err
}

// deployer is how the console changes the app's version; nil where none runs.
func (e *Environment) deployer() func(context.Context, string) (console.DeployResult, error) {
	if !e.hasApp() {
		return nil
	}
	return func(ctx context.Context, path string) (console.DeployResult, error) {
		done, err := e.DeployPath(ctx, path)
		if why := refusal(err); why != "" {
			e.Logger.Warn("deployment refused", "component", "app", "err", why)
		}
		return done, err
	}
}

// reloader is how the console does what HUP does; nil where queues are served alone.
func (e *Environment) reloader() func(context.Context) (console.ReloadResult, error) {
	if e.QueuesOnly {
		return nil
	}
	return func(ctx context.Context) (console.ReloadResult, error) {
		done, err := e.reloadChanged(ctx)
		if why := refusal(err); why != "" {
			e.Logger.Warn("reload refused", "component", "app", "err", why)
		}
		return done, err
	}
}

// visible reports whether the other commands can find this environment.
func (e *Environment) visible() bool { return e.address != "" || e.broker != nil }

// claimFiles has the files that the other commands read removed after the
// stop of everything that starts later.
func (e *Environment) claimFiles(context.Context) error {
	if e.visible() {
		e.steps.push("the instance file", func(context.Context) error {
			e.instanceFile.mu.Lock()
			defer e.instanceFile.mu.Unlock()
			e.instanceFile.written = false
			return errors.Join(console.RemoveInstance(e.s.DataDir), console.RemoveToken(e.s.DataDir))
		})
	}
	return nil
}

// announce writes down where the environment answers, for the other commands,
// and tells the person who started it.
func (e *Environment) announce(context.Context) error {
	if e.token != "" {
		if err := console.WriteToken(e.s.DataDir, e.token); err != nil {
			return fmt.Errorf("writing the console's token: %w", err)
		}
	}
	if e.visible() {
		if err := e.writeInstance(); err != nil {
			return fmt.Errorf("writing the instance file: %w", err)
		}
	}
	close(e.announced)
	e.greet()
	return nil
}

func (e *Environment) writeInstance() error {
	e.instanceFile.mu.Lock()
	defer e.instanceFile.mu.Unlock()
	e.instanceFile.written = true
	return e.instance().Write(e.s.DataDir)
}

// instance is what the instance file says; the caller holds its lock.
func (e *Environment) instance() *console.Instance {
	i := &console.Instance{
		PID: os.Getpid(), Version: e.Version, Environment: e.s.Name, Console: e.address,
		ConsoleCertificate: e.instanceFile.certificate,
		Endpoint:           e.endpoint, Region: e.s.Region, AccountID: e.s.AccountID, StartedAt: e.began,
	}
	for _, l := range e.lines {
		i.Queues = append(i.Queues,
			console.InstanceQueue{Name: l.queue.name, URL: l.queue.url, DeadLetterQueue: l.queue.dead, Embedded: l.embedded})
	}
	return i
}

// greet prints the start: a few lines on a terminal, one event elsewhere.
func (e *Environment) greet() {
	show := "off"
	if e.address != "" {
		show = "http://" + e.address
		if e.s.ConsoleTLSCert != "" {
			show = "https://" + e.address
		}
	}
	var rows []logging.Row
	row := func(name, value string) { rows = append(rows, logging.Row{Name: name, Value: value}) }
	if e.endpoint != "" {
		row("queues", fmt.Sprintf("%s  (SQS protocol, in %s)", e.endpoint, e.s.DataDir))
	}
	for _, l := range e.lines {
		row("queue", l.queue.url)
		if l.queue.dead != "" {
			row("dead letters", l.queue.dead)
		}
	}
	if len(e.lines) > 1 {
		row("order", e.orderText())
	}
	for _, target := range e.targets() {
		row("delivers", target)
	}
	row("console", show)
	if e.Logger.Banner("tendril "+e.Version, e.s.Name, rows) {
		return
	}
	attrs := []any{"component", "environment", "environment", e.s.Name, "version", e.Version, "backend", e.s.Backend,
		"endpoint", e.endpoint, "console", show}
	if home := e.home(); home != nil {
		attrs = append(attrs, "queue", home.queue.name, "queue_url", home.queue.url, "dead_letter_queue", home.queue.dead,
			"target", home.goesTo())
	}
	if len(e.lines) > 1 {
		attrs = append(attrs, "queues", e.orderText())
	}
	e.Logger.Info("started", attrs...)
}

// orderText says which queue comes first.
func (e *Environment) orderText() string {
	var words []string
	total := 0
	for _, l := range e.lines {
		total += l.settings().Weight
	}
	for _, l := range e.inOrder() {
		word := l.queue.name
		if total > 0 {
			word += fmt.Sprintf(" %d%%", (100*l.settings().Weight+total/2)/total)
		}
		words = append(words, word)
	}
	if total > 0 {
		return strings.Join(words, ", ") + " of free slots"
	}
	return strings.Join(words, ", then ")
}

// targets are the places that messages are handed to, each once.
func (e *Environment) targets() (list []string) {
	for _, l := range e.lines {
		text := l.target
		if !l.settings().ToFunction() {
			text = "POST " + text
		}
		if l.settings().ToOwnApp() {
			text += e.commandText()
		}
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// commandText says how the app is started, for the greeting.
func (e *Environment) commandText() string {
	switch {
	case len(e.Command) > 0:
		return "  (" + strings.Join(e.Command, " ") + ")"
	case e.hasApp():
		return "  (" + e.Bundle.Processes[0].Command + ")"
	}
	return ""
}
