package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/cli/base"
	"tendril/internal/config"
	"tendril/internal/environment"
	"tendril/internal/observe/event"
	"tendril/internal/observe/logging"
)

// NewUp returns the command 'tendril up'.
func NewUp(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up [DIR|ZIP] [-- COMMAND ARGS...]",
		Short: "Run a worker environment: queue, worker and app",
		Long: `Runs a worker environment. The app is the "web" line of DIR's Procfile, or COMMAND, or a running
server at --target. Without any of them, DIR is the working folder if it has a Procfile,
Buildfile, cron.yaml or tendril.yaml. Messages come from an embedded, durable queue, or from
Amazon SQS with --queue-url. A zip archive is unpacked below the data directory, where the newest
five versions are kept.`,
		Example: `  tendril up examples/thumbnails
  tendril up letters.zip
  tendril up --target http://127.0.0.1:8080/ \
      --queue-url https://sqs.eu-west-1.amazonaws.com/123456789012/orders`,
		Args: base.OneApp,
		RunE: func(cmd *cobra.Command, args []string) error { return runUp(c, cmd, args) },
	}
	base.AddSettings(cmd)
	return cmd
}

func runUp(c *base.CLI, cmd *cobra.Command, args []string) error {
	var desired *environment.DesiredVersion
	for {
		if err := runVersion(c, cmd, args, desired); !errors.As(err, &desired) {
			return err
		}
	}
}

func runVersion(c *base.CLI, cmd *cobra.Command, args []string, desired *environment.DesiredVersion) error {
	opts, err := prepareVersion(c, cmd, args, desired)
	if err != nil {
		return err
	}
	if opts.Announced != nil {
		defer opts.Announced() // lets others choose ports if the environment ends before it announces itself
	}

	for {
		err := runEnvironment(c, opts)
		var changed *environment.NewSettings
		if !errors.As(err, &changed) {
			return err
		}
		opts.Config = changed.Config
		opts.Registry = changed.Registry
		opts.Again = true
	}
}

func prepareVersion(c *base.CLI, cmd *cobra.Command, args []string, desired *environment.DesiredVersion) (
	environment.Options, error) {
	c.Free = nil // set by another version's start; TakeFreePorts chooses again
	opts, err := base.PrepareApp(c, cmd, args, func(path string) (*bundle.Bundle, error) {
		if desired == nil {
			return base.OpenApp(c, cmd, path, "")
		}
		given, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		return base.OpenApp(c, cmd, desired.Archive, bundle.ArchiveName(given)) // the environment keeps its name
	})
	if err == nil {
		err = base.TakeFreePorts(c, cmd, &opts)
	}
	if err != nil {
		return opts, err
	}

	if desired != nil {
		opts.Shared, opts.Again = desired.SharedVersion, true
	}
	opts.Load = func(src config.Sources) (*config.Config, error) { return c.ReadSettings(cmd, src) }
	return opts, nil
}

// runEnvironment starts a drain on a first SIGTERM or SIGINT, and stops immediately on a second one.
func runEnvironment(c *base.CLI, opts environment.Options) (err error) {
	cfg := opts.Config
	runsApp := opts.HasApp() || slices.ContainsFunc(cfg.Queues, func(q config.QueueSettings) bool { return q.Lambda != "" })
	if opts.Memory, err = limitMemory(runsApp); err != nil {
		return base.Fail(base.ExitUsage, err, "raise the limit, for example to the 64 MiB of the shipped sidecar")
	}

	asText := cfg.LogFormat == config.LogText || cfg.LogFormat == config.LogSQSD || cfg.LogFormat == config.LogAuto && c.Tty
	c.Buffer(asText)
	log := newLogger(c, cfg, asText)
	reportWarnings(c, log, asText, &opts)

	forget, err := api.Announce(c.StateFolder(), cfg.DataDir)
	if err != nil {
		log.Warn("environment not listed by 'tendril ps'", "component", "environment", "err", err)
	}
	defer forget()

	draining, drain := context.WithCancel(context.Background())
	defer drain()
	stopping, stop := context.WithCancel(context.Background())
	defer stop()

	announced := opts.Announced
	opts.Announced = func() {
		if announced != nil {
			announced()
		}
		go releaseProgram() // release the pages of startup before messages need memory
		time.AfterFunc(startupTail, func() { releaseMemory(draining) })
	}
	opts.Logger = log
	opts.Terminal = c.Tty
	env := environment.New(opts)
	signals := &signalHandler{env: env, log: log, drain: drain, stop: stop, second: make(chan syscall.Signal, 1)}
	unwatch := signals.watch()
	defer unwatch()
	err = env.Run(draining, stopping)
	select {
	case sig := <-signals.second:
		return base.Fail(base.ExitSignal+int(sig), errors.Join(fmt.Errorf("stopped immediately by a second signal "+
			"(%s)", sig), err))
	default:
		return err
	}
}

func reportWarnings(c *base.CLI, log *logging.Logger, asText bool, opts *environment.Options) {
	ofSettings := c.NewWarnings(opts.Config.Warnings)
	ofBundle := c.NewWarnings(append(base.BundleWarnings(opts.Bundle, environment.NotUsed(opts)), opts.MissingPrograms()...))
	if asText {
		c.PrintWarnings(append(ofSettings, ofBundle...)...)
		return
	}
	for _, w := range ofSettings {
		log.Warn("settings warning", attributesOf("config", w)...)
	}
	for _, w := range ofBundle {
		log.Warn("bundle warning", attributesOf("bundle", w)...)
	}
}

func attributesOf(component string, warning bundle.Problem) []any {
	attrs := []any{"component", component, "problem", warning.String()}
	if warning.Hint != "" {
		attrs = append(attrs, "hint", warning.Hint)
	}
	return attrs
}

func newLogger(c *base.CLI, cfg *config.Config, text bool) *logging.Logger {
	opts := logging.Options{Out: c.Out, Color: text && c.Color(), PerSecond: cfg.LogSample}
	switch {
	case cfg.LogFormat == config.LogSQSD:
		opts.Format = logging.SQSD
	case text:
		opts.Format = logging.Text
	}
	switch {
	case cfg.Quiet:
		opts.Level = slog.LevelWarn
	case cfg.Verbose:
		opts.Level = slog.LevelDebug
	}
	return logging.New(opts)
}

// NewServe returns the command 'tendril serve'.
func NewServe(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve only the embedded queues, over the SQS protocol",
		Args:  cobra.NoArgs,
		Example: `  tendril serve
  tendril serve --data-dir /var/lib/tendril --listen 127.0.0.1:9324`,
	}

	base.AddSettingsOf(cmd, func(o config.Option) bool { return o.Serve })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadServeSettings(c, cmd)
		if err != nil {
			return err
		}
		opts := environment.Options{Config: cfg, QueuesOnly: true, Folder: base.FolderOf(nil), AppEnv: c.Environ,
			Version: c.Version}
		if c.Free, opts.Announced = opts.FreePorts(); len(c.Free) > 0 {
			if opts.Config, err = loadServeSettings(c, cmd); err != nil {
				return err
			}
		}
		return runEnvironment(c, opts)
	}

	return cmd
}

func loadServeSettings(c *base.CLI, cmd *cobra.Command) (*config.Config, error) {
	cfg, err := c.LoadSettings(cmd, nil)
	if err != nil {
		return nil, err
	}
	cfg.Backend = config.BackendEmbedded
	return cfg, nil
}

// sameSignal is the interval after a first SIGTERM or SIGINT in which a second one is ignored.
const sameSignal = 250 * time.Millisecond

// signalHandler reloads settings and the app's folder on SIGHUP and does not stop the process, so that no work is lost
// when a terminal is closed. SIGUSR2 logs the state.
type signalHandler struct {
	env         *environment.Environment
	log         *logging.Logger
	drain, stop context.CancelFunc
	drainedAt   time.Time           // zero until drain was called
	second      chan syscall.Signal // receives the second SIGTERM or SIGINT
}

// pauseSignals pause all queues. SIGUSR1 also ends this pause. SIGTSTP, which Sidekiq also uses and a terminal sends for
// Ctrl-Z, never does, so that a deployment can repeat it.
var pauseSignals = map[os.Signal]string{syscall.SIGUSR1: "USR1", syscall.SIGTSTP: "TSTP"}

func (h *signalHandler) watch() (unwatch func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, append(slices.Collect(maps.Keys(pauseSignals)), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP,
		syscall.SIGUSR2)...)
	go func() {
		for s := range signals {
			h.handle(s.(syscall.Signal))
		}
	}()

	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

func (h *signalHandler) handle(sig syscall.Signal) {
	switch {
	case pauseSignals[sig] != "":
		h.pause(sig)
	case sig == syscall.SIGHUP:
		go h.reload() // it may take minutes
	case sig == syscall.SIGUSR2:
		go environment.LogState(h.env) // it may block if the environment hangs
	case h.drainedAt.IsZero():
		h.drainedAt = time.Now()
		h.drain() // before logging, which could delay it
		event.Stop.Log(h.log.Logger, slog.LevelInfo, "draining, a second signal stops immediately", "component", "environment",
			"reason", sig.String())
	case time.Since(h.drainedAt) < sameSignal:
		// One signal may arrive twice, from the parent process and for the process group.
	default:
		select {
		case h.second <- sig:
		default:
		}
		h.stop()
	}
}

func (h *signalHandler) reload() {
	if err := h.env.Hangup(); err != nil {
		event.Deploy.Log(h.log.Logger, slog.LevelWarn, "reload rejected", "component", "environment", "err", err)
	}
}

func (h *signalHandler) pause(sig syscall.Signal) {
	pause := h.env.Quiet
	if sig == syscall.SIGUSR1 {
		pause = h.env.TogglePause
	}
	if err := pause("the signal " + pauseSignals[sig]); err != nil {
		h.log.Warn("pause rejected", "component", "environment", "reason", pauseSignals[sig], "err", err)
	}
}
