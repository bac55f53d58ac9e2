package main

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
	"tendril/internal/cli/scaffold"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
	"tendril/internal/environment"
	"tendril/internal/host/trust"
	"tendril/internal/observe/event"
	"tendril/internal/observe/logging"
)

func newUp(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up [DIR|ZIP] [-- COMMAND ARGS...]",
		Short: "Run a worker environment: queue, worker and app",
		Long: `Runs a worker environment. The app is the "web" line of DIR's Procfile, or COMMAND, or
already runs at --target. Without any of them, DIR is the working folder if it has a
Procfile, Buildfile, cron.yaml or tendril.yaml. Messages come from an embedded, durable
queue, or from Amazon SQS with --queue-url. A zip archive is unpacked below the data
directory, where the newest five versions are kept.`,
		Example: `  tendril up examples/thumbnails
  tendril up letters.zip
  tendril up --target http://127.0.0.1:8080/ \
      --queue-url https://sqs.eu-west-1.amazonaws.com/123456789012/orders`,
		Args: oneApp,
		RunE: func(cmd *cobra.Command, args []string) error { return runUp(c, cmd, args) },
	}
	addSettings(cmd, func(config.Option) bool { return true })
	return cmd
}

// oneApp takes one folder or archive, and a command after two dashes.
func oneApp(cmd *cobra.Command, args []string) error {
	dirs, dash := len(args), cmd.ArgsLenAtDash()
	if dash >= 0 {
		dirs = dash
	}
	switch {
	case dirs > 1:
		return fmt.Errorf("%s takes one folder or archive, not %q; a command to run goes after --", cmd.Name(), args[:dirs])
	case dash == len(args):
		return errors.New("no command follows the two dashes")
	}
	return nil
}

func runUp(c *cli, cmd *cobra.Command, args []string) error {
	opts, err := prepareApp(c, cmd, args, func(path string) (*bundle.Bundle, error) { return openApp(c, cmd, path) })
	if err == nil {
		err = takeFreePorts(c, cmd, &opts)
	}
	if err != nil {
		return err
	}
	opts.Load = func(b *bundle.Bundle, file *config.File) (*config.Config, error) { return c.readSettings(cmd, b, file) }
	return runEnvironment(c, opts.Config, opts)
}

// takeFreePorts reads the settings again with other ports where the default ones are taken, by another environment for
// instance. Nothing changes where this environment runs already: that is told when it starts.
func takeFreePorts(c *cli, cmd *cobra.Command, opts *environment.Options) error {
	if _, err := api.ReadInstance(opts.Config.DataDir); err == nil {
		return nil
	}
	if c.free, opts.Announced = opts.FreePorts(); len(c.free) == 0 {
		return nil
	}
	cfg, err := c.loadSettings(cmd, opts.Bundle)
	if err == nil {
		folder, announced := opts.Folder, opts.Announced
		*opts, err = optionsFor(c, cfg, opts.Bundle, opts.Command)
		opts.Folder, opts.Announced = folder, announced
	}
	return err
}

// prepareApp reads the arguments and the settings, and opens the app's folder: all that
// 'tendril up' does before it starts anything, and what 'tendril check' looks at.
func prepareApp(c *cli, cmd *cobra.Command, args []string,
	open func(path string) (*bundle.Bundle, error)) (environment.Options, error) {
	dirs, command := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		dirs, command = args[:dash], args[dash:]
	}
	var err error
	if len(dirs) == 0 {
		if dirs, err = currentFolder(c, cmd, command); err != nil {
			return environment.Options{}, err
		}
	}
	var b *bundle.Bundle
	if len(dirs) > 0 {
		if b, err = open(dirs[0]); err != nil {
			return environment.Options{}, err
		}
	}
	cfg, err := c.loadSettings(cmd, b)
	if err != nil {
		return environment.Options{}, err
	}
	opts, err := optionsFor(c, cfg, b, command)
	opts.Folder = folderOf(dirs)
	return opts, err
}

// optionsFor are the options of an environment, with what is the same for all.
func optionsFor(c *cli, cfg *config.Config, b *bundle.Bundle, command []string) (environment.Options, error) {
	opts, err := upOptions(c, cfg, b, command)
	opts.Config, opts.AppEnv, opts.Version = cfg, c.environ, version
	return opts, err
}

// folderOf is the absolute path of the folder that 'tendril up' was given, or of the working folder; "" where that is
// not known.
func folderOf(dirs []string) string {
	path := "."
	if len(dirs) > 0 {
		if info, err := os.Stat(dirs[0]); err == nil && info.IsDir() {
			path = dirs[0]
		}
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	return absolute
}

// currentFolder is the working folder where nothing says what gets the messages and a file marks it as an app's;
// else nothing.
func currentFolder(c *cli, cmd *cobra.Command, command []string) ([]string, error) {
	const here = "."
	if !bundle.MarksFolder(here) {
		return nil, nil
	}
	cfg, err := c.loadSettings(cmd, nil)
	if err != nil {
		return nil, err
	}
	if len(command) > 0 || !cfg.AnyToOwnApp() || cfg.DaemonFile() {
		if _, err := os.Stat("cron.yaml"); err == nil && cfg.Cron == "" {
			c.warn(yamlfile.Problem{Where: "cron.yaml", Text: "this file is not read, since the app is not running from this " +
				"folder", Hint: "give --cron=cron.yaml, or name the folder: tendril " + cmd.Name() + " ."})
		}
		return nil, nil
	}
	if _, err := foundFolder(c, cmd); err != nil {
		return nil, err
	}
	return []string{here}, nil
}

// foundFolder opens the working folder, which nobody named: it is refused where others decide what is run from it.
func foundFolder(c *cli, cmd *cobra.Command) (*bundle.Bundle, error) {
	b, err := openBundle(".")
	if err != nil {
		return nil, err
	}
	var wrong *trust.Error
	if err := b.Trusted(); errors.As(err, &wrong) {
		return nil, fail(exitUsage, fmt.Errorf("the working folder is not trusted: %w", wrong), "type '"+wrong.Fix+"'",
			"or name the folder if what it says is to be run: tendril "+cmd.Name()+" .")
	} else if err != nil {
		return nil, err
	}
	return b, nil
}

// upOptions settles where the app is and refuses when nobody said.
func upOptions(c *cli, cfg *config.Config, b *bundle.Bundle, command []string) (environment.Options, error) {
	opts := environment.Options{Bundle: b, Command: command}
	if len(command) > 0 || b != nil && len(b.Processes) > 0 {
		if b != nil && len(command) == 0 {
			if _, err := b.Web(); err != nil {
				return opts, fail(exitUsage, err)
			}
		}
		return opts, nil
	}
	for i := range cfg.Queues {
		if q := &cfg.Queues[i]; q.ToOwnApp() && cfg.DaemonFile() {
			q.Target = "http://localhost" // where aws-sqsd posts to
		}
	}
	if !cfg.AnyToOwnApp() {
		return opts, nil
	}
	if opts.Bundle = withDefault(c, b); opts.Bundle != b {
		return opts, nil
	}
	if b != nil {
		_, err := b.Web()
		return opts, fail(exitUsage, err)
	}
	here := ""
	if app, err := scaffold.Recognize(os.DirFS(".")); err == nil {
		here = "this folder has an app (" + app.Platform + "): 'tendril init' writes what starts it"
	}
	return opts, fail(exitUsage, errors.New("there is no app to deliver to"), here,
		"name a folder with a Procfile: tendril up DIR", "or a command: tendril up -- python3 app.py",
		"or an app that runs already: tendril up --target http://127.0.0.1:8080/",
		"or a Lambda function: tendril up --function NAME, or --lambda COMMAND for one on this machine")
}

// withDefault returns the bundle with what a platform of Elastic Beanstalk would run in the place of the Procfile
// that it lacks, and says so; the bundle itself where nothing can be told.
func withDefault(c *cli, b *bundle.Bundle) *bundle.Bundle {
	if b == nil || b.Default == nil {
		return b
	}
	d := b.Default
	fmt.Fprintf(c.err, "no Procfile: %s is run, as Elastic Beanstalk's platform for %s does for %s\n",
		plain(d.Process.Command), d.Platform, d.File)
	return b.WithDefault()
}

// runEnvironment fills what all environments need, and runs one until it ends
// or signals end it: TERM or INT drain, a second one stops at once.
func runEnvironment(c *cli, cfg *config.Config, opts environment.Options) error {
	var err error
	if opts.Memory, err = limitMemory(opts.HasApp() || slices.ContainsFunc(cfg.Queues,
		func(q config.QueueSettings) bool { return q.Lambda != "" })); err != nil {
		return fail(exitUsage, err, "raise the limit, for example to the 64 MiB that the shipped sidecar requests")
	}
	text := cfg.LogFormat == config.LogText || cfg.LogFormat == config.LogSQSD || cfg.LogFormat == config.LogAuto && c.tty
	c.buffer(text)
	log := newLogger(c, cfg, text)
	opts.Config, opts.AppEnv, opts.Version, opts.Terminal = cfg, c.environ, version, c.tty
	ofBundle := append(bundleWarnings(opts.Bundle, environment.NotUsed(&opts)), opts.MissingPrograms()...)
	if text {
		c.warn(cfg.Warnings...)
		c.warn(ofBundle...)
	} else {
		for _, w := range cfg.Warnings {
			log.Warn("settings warning", attributesOf("config", w.String(), w.Hint)...)
		}
		for _, w := range ofBundle {
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
		go releaseProgram() // before the memory of messages adds to the pages that the start has read
		time.AfterFunc(startEnds, releaseStart)
	}
	env := environment.New(opts)
	killed := watchSignals(env, stopNow, cancelNow, log)
	err = env.Run(stop, now)
	select {
	case sig := <-killed:
		return fail(exitSignal+int(sig), errors.Join(fmt.Errorf("stopped at once by a second signal (%s)", sig), err))
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

// newLogger prints for a person at a terminal, or JSON.
func newLogger(c *cli, cfg *config.Config, text bool) *logging.Logger {
	opts := logging.Options{Out: c.out, Color: text && c.color(), PerSecond: cfg.LogSample}
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

func newServe(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the embedded queues alone, over the SQS protocol",
		Args:  cobra.NoArgs,
		Example: `  tendril serve
  tendril serve --data-dir /var/lib/tendril --listen 127.0.0.1:9324`,
	}
	addSettings(cmd, func(o config.Option) bool { return o.Serve })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := c.loadSettings(cmd, nil)
		if err != nil {
			return err
		}
		cfg.Backend = config.BackendEmbedded
		opts := environment.Options{Config: cfg, QueuesOnly: true, Folder: folderOf(nil), AppEnv: c.environ}
		if c.free, opts.Announced = opts.FreePorts(); len(c.free) > 0 {
			if cfg, err = c.loadSettings(cmd, nil); err != nil {
				return err
			}
			cfg.Backend = config.BackendEmbedded
		}
		return runEnvironment(c, cfg, opts)
	}
	return cmd
}

// sameSignal is the time within which a second signal is an echo of the first.
const sameSignal = 250 * time.Millisecond

// watchSignals drains at the first TERM or INT and stops at the second, which
// it reports. HUP puts in force what changed in the app's folder; what is wrong
// with it is told, and changes nothing. USR2 writes the state to the log. A closed terminal must not lose work.
func watchSignals(env *environment.Environment, drain, stop context.CancelFunc,
	log *logging.Logger) <-chan syscall.Signal {
	signals := make(chan os.Signal, 4)
	// They pause all queues, and let them go on when they come again. TSTP is what a terminal sends for ^Z, and what
	// other daemons take for it.
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
				go func() { // it may take minutes, in which other signals count
					if err := env.Hangup(); err != nil {
						event.Deploy.Log(log.Logger, slog.LevelWarn, "reload refused", "component", "environment", "err", err)
					}
				}()
			case sig == syscall.SIGUSR2:
				go environment.LogState(env) // it may hang where the environment does
			case draining.IsZero():
				draining = time.Now()
				drain() // first: nothing that is told may hold it up
				event.Stop.Log(log.Logger, slog.LevelInfo, "draining, a second signal stops at once", "component", "environment", "reason", sig.String())
			case time.Since(draining) < sameSignal:
				// The same wish, by way of the process group and of a parent.
			default:
				select {
				case killed <- sig:
				default:
				}
				stop()
			}
		}
	}()
	return killed
}

// setQuiet stops receiving, or goes on with it, and says how it ends.
func setQuiet(env *environment.Environment, name string, log *logging.Logger) {
	switch paused, err := env.Quiet("the signal " + name); {
	case err != nil:
		log.Warn("pause refused", "component", "environment", "reason", name, "err", err)
	case paused:
		event.Pause.Log(log.Logger, slog.LevelInfo, "all queues paused", "component", "environment", "reason", name,
			"hint", "send the signal again, or type 'tendril queues resume'")
	default:
		log.Info("all queues resumed", "component", "environment", "reason", name)
	}
}
