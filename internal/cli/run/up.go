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
		return err
	}
	if opts.Announced != nil {
		defer opts.Announced() // lets others choose ports if the environment ends before it announces itself
	}
	if desired != nil {
		opts.Shared, opts.Again = desired.SharedVersion, true
	}
	opts.Load = func(src config.Sources) (*config.Config, error) { return c.ReadSettings(cmd, src) }
	err = runEnvironment(c, opts.Config, opts)
	for found := (*environment.NewSettings)(nil); errors.As(err, &found); {
		opts.Config = found.Config
		opts.Registry = found.Registry
		opts.Again = true
		err = runEnvironment(c, opts.Config, opts)
	}
	return err
}

// runEnvironment starts a drain on a first SIGTERM or SIGINT, and stops immediately on a second one.
func runEnvironment(c *base.CLI, cfg *config.Config, opts environment.Options) error {
	var err error
	if opts.Memory, err = limitMemory(opts.HasApp() || slices.ContainsFunc(cfg.Queues,
		func(q config.QueueSettings) bool { return q.Lambda != "" })); err != nil {
		return base.Fail(base.ExitUsage, err, "raise the limit, for example to the 64 MiB of the shipped sidecar")
	}

	text := cfg.LogFormat == config.LogText || cfg.LogFormat == config.LogSQSD || cfg.LogFormat == config.LogAuto && c.Tty
	c.Buffer(text)
	log := newLogger(c, cfg, text)
	opts.Config = cfg
	opts.AppEnv = c.Environ
	opts.Version = c.Version
	opts.Terminal = c.Tty
	ofBundle := append(base.BundleWarnings(opts.Bundle, environment.NotUsed(&opts)), opts.MissingPrograms()...)
	if text {
		c.PrintWarnings(c.NewWarnings(cfg.Warnings)...)
		c.PrintWarnings(c.NewWarnings(ofBundle)...)
	} else {
		for _, w := range c.NewWarnings(cfg.Warnings) {
			log.Warn("settings warning", attributesOf("config", w.String(), w.Hint)...)
		}
		for _, w := range c.NewWarnings(ofBundle) {
			log.Warn("bundle warning", attributesOf("bundle", w.String(), w.Hint)...)
		}
	}

	opts.Logger = log
	stop, stopNow := context.WithCancel(context.Background())
	now, cancelNow := context.WithCancel(context.Background())
	defer stopNow()
	defer cancelNow()
	announced := opts.Announced
	opts.Announced = func() {
		if announced != nil {
			announced()
		}
		go releaseProgram() // release the pages of startup before messages need memory
		time.AfterFunc(startEnds, func() { releaseMemory(stop) })
	}

	forget, err := api.Announce(config.StateFolder(c.Environ, os.Geteuid() == 0), cfg.DataDir)
	if err != nil {
		log.Warn("environment not listed by 'tendril ps'", "component", "environment", "err", err)
	}
	defer forget()
	env := environment.New(opts)
	killed, unwatch := watchSignals(env, stopNow, cancelNow, log)
	defer unwatch()
	err = env.Run(stop, now)
	select {
	case sig := <-killed:
		return base.Fail(base.ExitSignal+int(sig), errors.Join(fmt.Errorf("stopped immediately by a second signal "+
			"(%s)", sig), err))
	default:
		return err
	}
}

func attributesOf(component, problem, hint string) []any {
	attrs := []any{"component", component, "problem", problem}
	if hint != "" {
		attrs = append(attrs, "hint", hint)
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
		cfg, err := c.LoadSettings(cmd, nil)
		if err != nil {
			return err
		}
		cfg.Backend = config.BackendEmbedded
		opts := environment.Options{Config: cfg, QueuesOnly: true, Folder: base.FolderOf(nil), AppEnv: c.Environ}
		if c.Free, opts.Announced = opts.FreePorts(); len(c.Free) > 0 {
			if cfg, err = c.LoadSettings(cmd, nil); err != nil {
				return err
			}
			cfg.Backend = config.BackendEmbedded
		}
		return runEnvironment(c, cfg, opts)
	}

	return cmd
}

// sameSignal is the interval in which a repeated signal is ignored.
const sameSignal = 250 * time.Millisecond

// watchSignals handles signals. The first SIGTERM or SIGINT starts a drain; the second one stops immediately and is
// sent to the returned channel. SIGHUP reloads the app's folder, and does not stop the process, so that no work is lost
// when a terminal is closed. SIGUSR2 logs the state.
func watchSignals(env *environment.Environment, drain, stop context.CancelFunc,
	log *logging.Logger) (second <-chan syscall.Signal, unwatch func()) {
	signals := make(chan os.Signal, 4)
	// A terminal sends SIGTSTP for Ctrl-Z, and other daemons use it to pause, too.
	quiet := map[os.Signal]string{syscall.SIGUSR1: "USR1", syscall.SIGTSTP: "TSTP"}
	signal.Notify(signals, append(slices.Collect(maps.Keys(quiet)), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP,
		syscall.SIGUSR2)...)
	killed := make(chan syscall.Signal, 1)
	go func() {
		var draining time.Time
		for s := range signals {
			sig := s.(syscall.Signal)
			switch {
			case quiet[sig] != "":
				setQuiet(env, quiet[sig], log)
			case sig == syscall.SIGHUP:
				go func() { // the reload may take minutes
					if err := env.Hangup(); err != nil {
						event.Deploy.Log(log.Logger, slog.LevelWarn, "reload rejected", "component", "environment", "err", err)
					}
				}()
			case sig == syscall.SIGUSR2:
				go environment.LogState(env) // it may block if the environment hangs
			case draining.IsZero():
				draining = time.Now()
				drain() // before logging, which could delay it
				event.Stop.Log(log.Logger, slog.LevelInfo, "draining, a second signal stops immediately", "component", "environment", "reason", sig.String())
			case time.Since(draining) < sameSignal:
				// The parent process and the process group both forwarded the signal.
			default:
				select {
				case killed <- sig:
				default:
				}
				stop()
			}
		}
	}()

	return killed, func() {
		signal.Stop(signals)
		close(signals)
	}
}

func setQuiet(env *environment.Environment, name string, log *logging.Logger) {
	switch paused, err := env.Quiet("the signal " + name); {
	case err != nil:
		log.Warn("pause rejected", "component", "environment", "reason", name, "err", err)
	case paused:
		event.Pause.Log(log.Logger, slog.LevelInfo, "all queues paused", "component", "environment", "reason", name,
			"hint", "send the signal again, or type 'tendril queues resume'")
	default:
		log.Info("all queues resumed", "component", "environment", "reason", name)
	}
}
