package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"

	"tendril/bundle"
	"tendril/config"
	"tendril/environment"
)

func (c *cli) newUp() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up [DIR] [-- COMMAND ARGS...]",
		Short: "Run a worker environment: queue, worker and app",
		Long: `Runs a worker environment. The app is the "web" line of DIR's Procfile, or
COMMAND, or runs already where --target says. Messages come from an embedded,
durable queue, or from Amazon SQS with --queue-url.`,
		Example: `  tendril up examples/thumbnails
  tendril up --target http://127.0.0.1:8080/ --queue-url https://sqs.eu-west-1.amazonaws.com/123456789012/orders`,
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		dirs := len(args)
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			dirs = dash
		}
		if dirs > 1 {
			return fmt.Errorf("up takes one folder, not %q; a command to run goes after --", args[:dirs])
		}
		return nil
	}
	addSettings(cmd, func(config.Option) bool { return true })
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.up(cmd, args) }
	return cmd
}

func (c *cli) up(cmd *cobra.Command, args []string) error {
	b, command, err := c.app(cmd, args)
	if err != nil {
		return err
	}
	cfg, err := c.loadSettings(cmd, b)
	if err != nil {
		return err
	}
	opts, err := c.upOptions(cfg, b, command)
	if err != nil {
		return err
	}
	return c.runEnvironment(cfg, opts)
}

// upOptions settles where the app is and refuses when nobody said.
func (c *cli) upOptions(cfg *config.Config, b *bundle.Bundle, command []string) (environment.Options, error) {
	opts := environment.Options{Bundle: b, Command: command}
	if len(command) > 0 || b != nil && len(b.Processes) > 0 {
		if b != nil && len(command) == 0 {
			if _, err := b.Web(); err != nil {
				return opts, fail(exitUsage, err)
			}
		}
		return opts, nil
	}
	if cfg.Target == "" && cfg.DaemonFile() {
		cfg.Target = "http://localhost"
	}
	if cfg.Target != "" {
		return opts, nil
	}
	if b != nil {
		_, err := b.Web()
		return opts, fail(exitUsage, err)
	}
	return opts, fail(exitUsage, errors.New("there is no app to deliver to"),
		"name a folder with a Procfile: tendril up DIR",
		"or a command: tendril up -- python3 app.py",
		"or an app that runs already: tendril up --target http://127.0.0.1:8080/")
}

// app reads the arguments: a folder, and a command after two dashes.
func (c *cli) app(cmd *cobra.Command, args []string) (*bundle.Bundle, []string, error) {
	dirs, command := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		dirs, command = args[:dash], args[dash:]
		if len(command) == 0 {
			return nil, nil, fail(exitUsage, errors.New("no command follows the two dashes"), "tendril up -- COMMAND ARGS")
		}
	}
	if len(dirs) == 0 {
		return nil, command, nil
	}
	b, err := openBundle(dirs[0])
	return b, command, err
}

// runEnvironment fills what all environments need, and runs one until it ends
// or signals end it: TERM or INT drain, a second one stops at once.
func (c *cli) runEnvironment(cfg *config.Config, opts environment.Options) error {
	text := cfg.LogFormat == "text" || cfg.LogFormat == "auto" && c.tty
	out := c.out
	if !text {
		lines := newLineBuffer(c.out)
		defer lines.Close()
		out = lines
	}
	log := c.logger(cfg, out, text)
	if text {
		c.printWarnings(cfg)
	} else {
		for _, w := range cfg.Warnings {
			log.Warn(w.String(), "component", "config", "hint", w.Hint)
		}
	}
	opts.Config, opts.AppEnv, opts.Version = cfg, c.environ, version
	opts.Out, opts.Terminal, opts.Color = out, text, text && c.color()
	opts.Logger = log
	stop, stopNow := context.WithCancel(context.Background())
	now, cancelNow := context.WithCancel(context.Background())
	defer stopNow()
	defer cancelNow()
	env := environment.New(opts)
	killed := watchSignals(stopNow, cancelNow, env.Reload, log)
	err := env.Run(stop, now)
	select {
	case sig := <-killed:
		return fail(exitSignal+int(sig), errors.Join(fmt.Errorf("stopped at once by a second signal (%s)", sig), err))
	default:
		return err
	}
}

// sameSignal is the time within which a second signal is an echo of the first.
const sameSignal = 250 * time.Millisecond

// watchSignals drains at the first TERM or INT and stops at the second, which
// it reports. HUP reloads the periodic tasks; what is wrong with them is told,
// and changes nothing. A closed terminal must not lose work.
func watchSignals(drain, stop context.CancelFunc, reload func() error, log *slog.Logger) <-chan syscall.Signal {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	killed := make(chan syscall.Signal, 1)
	go func() {
		var draining time.Time
		for s := range signals {
			sig := s.(syscall.Signal)
			switch {
			case sig == syscall.SIGHUP:
				if err := reload(); err != nil {
					log.Warn("nothing was reloaded", "component", "environment", "err", err)
				}
			case draining.IsZero():
				draining = time.Now()
				log.Info("draining; a second signal stops at once", "component", "environment", "reason", sig.String())
				drain()
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

// logger prints for a person on a terminal and JSON lines elsewhere.
func (c *cli) logger(cfg *config.Config, out io.Writer, text bool) *slog.Logger {
	level := slog.LevelInfo
	switch {
	case cfg.Quiet:
		level = slog.LevelWarn
	case cfg.Verbose:
		level = slog.LevelDebug
	}
	if text {
		return slog.New(tint.NewTextHandler(c.err, &tint.Options{Level: level, TimeFormat: "15:04:05", NoColor: !c.color()}))
	}
	return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level}))
}
