package environment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"tendril/config"
	"tendril/console"
)

// startConsole opens the console's listener early, so that it can show the
// start, and closes it late, so that it can show the drain.
func (e *Environment) startConsole(context.Context) error {
	if e.s.Console == config.Off {
		return nil
	}
	if err := os.MkdirAll(e.s.DataDir, 0o700); err != nil {
		return fmt.Errorf("making the data directory: %w; name another with --data-dir", err)
	}
	l, err := listen("console", e.s.Console)
	if err != nil {
		return err
	}
	e.address = l.Addr().String()
	e.token = console.NewToken()
	server := console.New(&console.Options{
		Environment: e.s.Name, Version: e.Version, Status: e.Status, Ready: e.checks,
		Pause: e.pause, Resume: e.resume, Drain: e.Drain,
		Tasks: e.taskOptions(), Broker: e.broker, Deliveries: e.shown, Token: e.token, Logger: e.Logger,
	})
	e.serve("the console", console.HTTPServer(server), l, server.Close)
	return nil
}

// visible reports whether the other commands can find this environment.
func (e *Environment) visible() bool { return e.address != "" || e.broker != nil }

// claimFiles has the files that the other commands read removed after the
// stop of everything that starts later.
func (e *Environment) claimFiles(context.Context) error {
	if e.visible() {
		e.steps.push("the instance file", func(context.Context) error {
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
		if err := e.instance().Write(e.s.DataDir); err != nil {
			return fmt.Errorf("writing the instance file: %w", err)
		}
	}
	e.greet()
	return nil
}

func (e *Environment) instance() *console.Instance {
	i := &console.Instance{
		PID: os.Getpid(), Version: e.Version, Environment: e.s.Name, Console: e.address, Endpoint: e.endpoint,
		Region: e.s.Region, AccountID: e.s.AccountID, StartedAt: e.began,
	}
	if e.work != nil {
		i.Queue, i.QueueURL, i.DeadLetterQueue = e.work.queue.name, e.work.queue.url, e.work.queue.dead
	}
	return i
}

// greet prints the start: a few lines on a terminal, one event elsewhere.
func (e *Environment) greet() {
	show := "off"
	if e.address != "" {
		show = "http://" + e.address
	}
	if !e.report.text {
		attrs := []slog.Attr{slog.String("environment", e.s.Name), slog.String("version", e.Version), slog.String("backend", e.s.Backend),
			slog.String("endpoint", e.endpoint), slog.String("console", show)}
		if e.work != nil {
			attrs = append(attrs, slog.String("queue", e.work.queue.name), slog.String("queue_url", e.work.queue.url),
				slog.String("dead_letter_queue", e.work.queue.dead), slog.String("target", e.work.target))
		}
		e.report.note(slog.LevelInfo, "environment", "started", attrs...)
		return
	}
	if e.s.Quiet {
		return
	}
	e.report.line(func(b *bytes.Buffer) {
		row := func(name, value string) { fmt.Fprintf(b, "\n  %-12s %s", name, value) }
		e.report.paint(b, green, "tendril "+e.Version)
		b.WriteString("  " + e.s.Name)
		if e.endpoint != "" {
			row("queues", fmt.Sprintf("%s  (SQS protocol, in %s)", e.endpoint, e.s.DataDir))
		}
		if e.work != nil {
			row("queue", e.work.queue.url)
			if e.work.queue.dead != "" {
				row("dead letters", e.work.queue.dead)
			}
			row("app", "POST "+e.work.target+e.commandText())
		}
		row("console", show)
	})
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
