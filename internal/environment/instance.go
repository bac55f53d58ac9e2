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

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/host/datadir"
	"tendril/internal/host/listen"
	"tendril/internal/host/terminal"
	"tendril/internal/observe/health"
)

type instance struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	queues   *queues
	work     *pipelines

	began   time.Time
	program api.Program
	address string // local; "" if off
	public  string // for other machines, or the local address
	token   string
	// login returns the path of a login link; nil if the console is off.
	login  func(scopes ...string) string
	opened atomic.Pointer[datadir.Identity]

	mu          sync.Mutex
	written     bool
	certificate string // fingerprint; "" for plain HTTP
}

// claim locks the data directory even without embedded queues, which lock their database.
func (i *instance) claim(context.Context) error {
	s := i.settings.now()
	if !i.queues.ownsDataDir() {
		return nil
	}
	if err := datadir.Make(s.DataDir); err != nil {
		return invalidSettings(err)
	}
	release, err := api.Claim(s.DataDir)
	if errors.Is(err, api.ErrClaimed) {
		advice := "give this one its own --data-dir"
		if i.queues.broker == nil {
			advice += ", or --console off"
		}
		return conflict{fmt.Errorf("%w; %s", err, advice)}
	}
	if err != nil {
		return err
	}

	opened := datadir.Identify(s.DataDir, filepath.Join(s.DataDir, claimFile))
	i.opened.Store(&opened)
	i.life.closeOnStop("the claim of the data directory", release)
	if err := bundle.RestrictVersions(s.DataDir); err != nil {
		i.opts.log("environment").Warn("other users may be able to read versions of the app", "err", err)
	}
	return nil
}

func (i *instance) dataDirState() (st health.DataDirState) {
	opened := i.opened.Load()
	if opened == nil {
		return st
	}
	lost := opened.Changed()
	if st.Embedded = i.queues.broker != nil; st.Embedded {
		lost = cmp.Or(i.queues.broker.Lost(), lost)
	}
	if lost != nil {
		st.Lost = lost.Error()
	}
	return st
}

func (i *instance) listen() (net.Listener, error) {
	s := i.settings.now()
	l, err := listenConsole(s)
	if err != nil {
		return nil, err
	}
	i.address = listen.Local(l)
	i.public = listen.Reachable(l)
	i.token = cmp.Or(s.ConsoleToken, api.NewToken())
	if s.ConsoleTLSCert == "" {
		return l, nil
	}

	certificate, err := openCertificate("console-tls-cert", s.ConsoleTLSCert, s.ConsoleTLSKey, i.opts.log("console"),
		i.certificateChanged)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	i.certificate = certificate.Fingerprint()
	return tls.NewListener(l, certificate.TLSConfig()), nil
}

func (i *instance) reachable() (address, certificate string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.public, i.certificate
}

func (i *instance) visible() bool { return i.address != "" || i.queues.broker != nil }

func (i *instance) removeFilesOnStop(context.Context) error {
	if !i.visible() {
		return nil
	}
	i.life.onStop("the instance file", func(context.Context) error {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.written = false
		if i.dataDirState().Lost != "" {
			return nil // the files at that path are another environment's
		}
		dir := i.settings.now().DataDir
		return errors.Join(api.RemoveInstance(dir), api.RemoveToken(dir))
	})
	return nil
}

func (i *instance) writeFiles() error {
	s := i.settings.now()
	if i.token != "" {
		if err := api.WriteToken(s.DataDir, i.token); err != nil {
			return fmt.Errorf("writing the console's token: %w", err)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.written = i.visible(); !i.written {
		return nil
	}
	if err := i.file().Write(s.DataDir); err != nil {
		return fmt.Errorf("writing the instance file: %w", err)
	}
	return nil
}

func (i *instance) certificateChanged(fingerprint string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.certificate = fingerprint
	if !i.written {
		return
	}
	if err := i.file().Write(i.settings.now().DataDir); err != nil {
		i.opts.log("console").Error("instance file not written", "err", err)
		return
	}
	i.opts.log("console").Info("certificate replaced")
}

// file must be called with mu held.
func (i *instance) file() *api.Instance {
	s := i.settings.now()
	file := &api.Instance{
		PID: os.Getpid(), Version: i.opts.Version, Program: i.program, Environment: s.Name,
		Console: i.address, ConsoleCertificate: i.certificate, Endpoint: i.queues.endpoint,
		Region: s.Region, AccountID: s.AccountID, StartedAt: i.began,
		AppliesMachine: i.opts.AppliesMachine(), Folder: i.opts.Folder,
	}
	if i.opts.HasApp() {
		file.AppPort = s.Port
	}
	for _, l := range i.work.all {
		q := l.queue
		file.Queues = append(file.Queues,
			api.InstanceQueue{Name: q.name, URL: q.url, DeadLetterQueue: q.dead, Embedded: q.embedded})
	}
	return file
}

func (i *instance) greet() {
	s := i.settings.now()
	console := "off"
	if i.address != "" {
		console = "http://" + i.address
		if s.ConsoleTLSCert != "" {
			console = "https://" + i.address
		}
	}
	if i.opts.Logger.Banner("tendril "+i.opts.Version, s.Name, i.greetingRows(console)) {
		return
	}

	attrs := []any{"component", "environment", "environment", s.Name, "version", i.opts.Version, "backend", s.Backend,
		"endpoint", i.queues.endpoint, "console", console}
	if home := i.queues.home(); home != nil {
		attrs = append(attrs, "queue", home.name, "queue_url", home.url, "dead_letter_queue", home.dead,
			"target", i.work.all[0].target.current())
	}
	if len(i.work.all) > 1 {
		attrs = append(attrs, "queues", i.queues.orderText())
	}
	i.opts.Logger.Info("started", attrs...)
}

func (i *instance) greetingRows(console string) (rows [][2]string) {
	s := i.settings.now()
	add := func(name, value string) { rows = append(rows, [2]string{name, value}) }
	if b := i.opts.Bundle; b != nil && len(i.opts.Command) == 0 && b.VirtualEnv() != "" {
		add("python", b.VirtualEnv())
	}
	if i.queues.endpoint != "" {
		add("queues", fmt.Sprintf("%s  (SQS protocol, in %s)", i.queues.endpoint, s.DataDir))
	}
	for _, l := range i.work.all {
		add("queue", l.queue.url)
		if l.queue.dead != "" {
			add("dead letters", l.queue.dead)
		}
	}
	if len(i.work.all) > 1 {
		add("order", i.queues.orderText())
	}
	for _, target := range i.targetTexts() {
		add("delivers", target)
	}

	if i.opts.Terminal && i.login != nil && s.ConsoleAuth != config.ConsoleAuthNone {
		console += i.login() + "  (once, within 10 minutes; then 'tendril open')"
	}
	add("console", console)
	return rows
}

func (i *instance) targetTexts() (texts []string) {
	for _, l := range i.work.all {
		text := l.target.name
		if !l.queue.settings().ToFunction() {
			text = "POST " + text
		}
		if l.queue.settings().ToOwnApp() {
			text += i.opts.commandText()
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

func (i *instance) reportReady(running context.Context) {
	if len(i.work.all) == 0 {
		i.greetReady()
		return
	}

	states := []<-chan struct{}{i.life.receiving}
	if i.opts.HasApp() {
		states = append(states, i.life.ready)
	}

	go func() {
		for _, state := range states {
			select {
			case <-state:
			case <-running.Done():
				return
			}
		}
		i.work.observe.monitor.Report() // logs a change of health before the line "ready"
		i.greetReady()
	}()
}

func (i *instance) greetReady() {
	took := time.Since(i.began)
	rows := [][2]string{{"next", i.nextCommand()}}
	if !i.opts.Logger.Banner("ready", "after "+took.Round(10*time.Millisecond).String(), rows) {
		i.opts.log("environment").Info("ready", "duration_ms", took.Milliseconds())
	}
}

func (i *instance) nextCommand() string {
	queue, flags := "", ""
	if len(i.work.all) > 1 {
		queue = " -q " + i.work.all[0].queue.name
	}
	running := api.Running(api.DataDirectories(i.opts.stateFolder()))
	dir, _ := filepath.Abs(i.settings.now().DataDir)
	own := slices.IndexFunc(running, func(f api.Found) bool { return f.DataDir == dir })
	if own >= 0 && len(running) > 1 {
		flags = " -e " + terminal.ShellWord(running[own].Name)
	}

	switch {
	case len(i.work.all) == 0:
		return "tendril queues create jobs" + flags
	case slices.ContainsFunc(i.work.all, func(l *pipeline) bool { return isPaused(l.worker.Status()) }):
		return "tendril queues resume" + flags
	case !i.work.all[0].queue.embedded: // its messages are real work
		return "tendril status" + flags
	}
	return "tendril send --wait" + flags + queue + ` '{"hello": "world"}'   (in another terminal)`
}
