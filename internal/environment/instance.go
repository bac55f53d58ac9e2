package environment

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/host/datadir"
	"tendril/internal/host/listen"
	"tendril/internal/observe/health"
)

// instance is how the other commands find this environment: the claim of its data
// directory, the console's address and token, and the files that hold them.
type instance struct {
	*pipelines
	began   time.Time
	program console.Program // as it was at the start
	address string          // at which this machine reaches the console; "" when off
	token   string          // the console's; "" when off
	// login makes the path of a link for a browser; nil when the console is off.
	login func(scopes ...string) string
	// files are the data directory and the file that claims it.
	files atomic.Pointer[datadir.Identity]

	mu          sync.Mutex
	written     bool
	certificate string // the fingerprint of the console's; "" for plain HTTP
}

// claim makes this process the one that the other commands find in the data directory. The embedded queues have
// a lock of their own there; an environment without any may not take the files of another one either.
func (i *instance) claim(context.Context) error {
	i.program = console.ThisProgram()
	if !i.ownsDataDir() {
		return nil
	}
	if err := datadir.Make(i.s.DataDir); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	release, err := console.Claim(i.s.DataDir)
	if errors.Is(err, console.ErrClaimed) {
		advice := "give this one its own --data-dir"
		if i.broker == nil {
			advice += ", or --console off"
		}
		return conflict{fmt.Errorf("%w; %s", err, advice)}
	}
	if err != nil {
		return err
	}
	files := datadir.Identify(i.s.DataDir, filepath.Join(i.s.DataDir, claimFile))
	i.files.Store(&files)
	i.steps.push("the claim of the data directory", func(context.Context) error { return release() })
	if err := bundle.CloseVersions(i.s.DataDir); err != nil {
		i.Logger.Warn("other users may be able to read versions of the app", "component", "environment", "err", err)
	}
	return nil
}

// dataDir is what health is told of the data directory.
func (i *instance) dataDir() (st health.DataDirState) {
	lost := error(nil)
	if files := i.files.Load(); files != nil {
		lost = files.Changed()
		if st.Embedded = i.broker != nil; st.Embedded {
			lost = cmp.Or(i.broker.Lost(), lost)
		}
	}
	if lost != nil {
		st.Lost = lost.Error()
	}
	return st
}

func (i *instance) listen() (net.Listener, error) {
	l, err := listenConsole(i.s)
	if err != nil {
		return nil, err
	}
	i.address = listen.Local(l)
	i.token = cmp.Or(i.s.ConsoleToken, console.NewToken())
	if i.s.ConsoleTLSCert == "" {
		return l, nil
	}
	certificate, err := console.OpenCertificate(i.s.ConsoleTLSCert, i.s.ConsoleTLSKey, console.CertificateEvents{
		Changed: i.certificateChanged,
		Rejected: func(err error) {
			i.Logger.Error("certificate not replaced", "component", "console", "err", err)
		},
	})
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("%w: --console-tls-cert: %w", ErrSettings, err)
	}
	i.certificate = certificate.Fingerprint()
	return tls.NewListener(l, certificate.TLSConfig()), nil
}

// visible reports whether the other commands can find this environment.
func (i *instance) visible() bool { return i.address != "" || i.broker != nil }

// claimFiles has the files removed after the stop of everything that starts later.
func (i *instance) claimFiles(context.Context) error {
	if i.visible() {
		i.steps.push("the instance file", func(context.Context) error {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.written = false
			if i.dataDir().Lost != "" {
				return nil // those at the path are another's
			}
			return errors.Join(console.RemoveInstance(i.s.DataDir), console.RemoveToken(i.s.DataDir))
		})
	}
	return nil
}

// writeFiles lets the other commands find this environment.
func (i *instance) writeFiles() error {
	if i.token != "" {
		if err := console.WriteToken(i.s.DataDir, i.token); err != nil {
			return fmt.Errorf("writing the console's token: %w", err)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.written = i.visible(); !i.written {
		return nil
	}
	if err := i.describe().Write(i.s.DataDir); err != nil {
		return fmt.Errorf("writing the instance file: %w", err)
	}
	return nil
}

// certificateChanged writes the instance file anew, where it is written already.
func (i *instance) certificateChanged(fingerprint string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.certificate = fingerprint
	if !i.written {
		return
	}
	if err := i.describe().Write(i.s.DataDir); err != nil {
		i.Logger.Error("writing the instance file failed", "component", "console", "err", err)
		return
	}
	i.Logger.Info("certificate replaced", "component", "console")
}

// describe is what the instance file says; the caller holds its lock.
func (i *instance) describe() *console.Instance {
	file := &console.Instance{
		PID: os.Getpid(), Version: i.Version, Program: i.program, Environment: i.s.Name, Console: i.address, ConsoleCertificate: i.certificate,
		Endpoint: i.endpoint, Region: i.s.Region, AccountID: i.s.AccountID, StartedAt: i.began,
		AppliesMachine: i.AppliesMachine(), Folder: i.Folder,
	}
	if i.HasApp() {
		file.AppPort = i.s.Port
	}
	for _, l := range i.lines {
		file.Queues = append(file.Queues,
			console.InstanceQueue{Name: l.name, URL: l.url, DeadLetterQueue: l.dead, Embedded: l.embedded})
	}
	return file
}

// greet prints the start: a few lines on a terminal, one event elsewhere.
func (i *instance) greet() {
	console := "off"
	if i.address != "" {
		console = "http://" + i.address
		if i.s.ConsoleTLSCert != "" {
			console = "https://" + i.address
		}
	}
	var rows [][2]string
	row := func(name, value string) { rows = append(rows, [2]string{name, value}) }
	if i.endpoint != "" {
		row("queues", fmt.Sprintf("%s  (SQS protocol, in %s)", i.endpoint, i.s.DataDir))
	}
	for _, l := range i.lines {
		row("queue", l.url)
		if l.dead != "" {
			row("dead letters", l.dead)
		}
	}
	if len(i.lines) > 1 {
		row("order", i.orderText())
	}
	var targets []string
	for _, l := range i.lines {
		text := l.target
		if !l.settings().ToFunction() {
			text = "POST " + text
		}
		if l.settings().ToOwnApp() {
			text += i.commandText()
		}
		if !slices.Contains(targets, text) {
			targets = append(targets, text)
			row("delivers", text)
		}
	}
	if i.Terminal && i.login != nil && i.s.ConsoleAuth != config.ConsoleAuthNone {
		row("console", console+i.login()+"  (once, for 10 minutes; then 'tendril open')")
	} else {
		row("console", console)
	}
	if i.Logger.Banner("tendril "+i.Version, i.s.Name, rows) {
		return
	}
	attrs := []any{"component", "environment", "environment", i.s.Name, "version", i.Version, "backend", i.s.Backend,
		"endpoint", i.endpoint, "console", console}
	if home := i.home(); home != nil {
		attrs = append(attrs, "queue", home.name, "queue_url", home.url, "dead_letter_queue", home.dead,
			"target", home.goesTo())
	}
	if len(i.lines) > 1 {
		attrs = append(attrs, "queues", i.orderText())
	}
	i.Logger.Info("started", attrs...)
}
