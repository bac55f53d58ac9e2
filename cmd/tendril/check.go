package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/bundle"
	"tendril/config"
	"tendril/environment"
	"tendril/periodic"
)

func (c *cli) newCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [DIR|ZIP] [-- COMMAND ARGS...]",
		Short: "Validate settings, bundle and periodic tasks, offline",
		Long: `Reads what 'tendril up' would read, with the same arguments, and says what is wrong
(exit status 2), what to know, and what of the bundle is left aside. Lists what a
deployment does, in order, the settings and environment properties of the bundle
that count, with file and line, and the periodic tasks with the next five times at
which each is due. Nothing is started, created or asked over the network.`,
		Args: oneApp,
	}
	addSettings(cmd, func(config.Option) bool { return true })
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.check(cmd, args) }
	return cmd
}

func (c *cli) check(cmd *cobra.Command, args []string) error {
	var b *bundle.Bundle
	var command []string
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args, command = args[:dash], args[dash:]
	}
	if len(args) > 0 {
		var err error
		var done func()
		b, done, err = c.lookInto(args[0])
		defer done()
		if err != nil {
			return err
		}
	}
	cfg, err := c.loadSettings(cmd, b)
	if err != nil {
		return err
	}
	c.printWarnings(cfg)
	if b != nil {
		if err := c.checkBundle(cfg, b, command); err != nil {
			return err
		}
	}
	if len(command) > 0 {
		fmt.Fprintf(c.out, "process  %s: %s\n", bundle.MainProcess, plain(strings.Join(command, " "), false))
	}
	if err := c.checkTasks(cronFile(cfg, b), time.Now()); err != nil {
		return err
	}
	if cfg.ConfigFile != "" {
		fmt.Fprintf(c.out, "file     %s\n", cfg.ConfigFile)
	}
	for _, q := range cfg.Queues {
		fmt.Fprintf(c.out, "queue    %s\n", queueText(&q))
	}
	fmt.Fprintln(c.out, "ok")
	return nil
}

// queueText says where a queue is and who gets its messages.
func queueText(q *config.QueueSettings) string {
	text := q.URL
	if text == "" {
		text = fmt.Sprintf("%s (%s)", q.Name, q.Backend)
	}
	if q.Weight > 0 {
		text += fmt.Sprintf(", weight %d", q.Weight)
	}
	switch {
	case q.Function != "":
		text += " to the function " + q.Function
	case q.Lambda != "":
		text += " to the function on this machine: " + q.Lambda
	case q.Target != "":
		text += " to " + q.Target + q.HTTPPath
	}
	return text
}

// cronFile is the path of the file of periodic tasks that 'tendril up' would
// read; "" when there is none.
func cronFile(cfg *config.Config, b *bundle.Bundle) string {
	switch {
	case cfg.Cron != "":
		return cfg.Cron
	case b != nil:
		return b.Cron
	}
	return ""
}

// shownTimes is how many times of a schedule are listed.
const shownTimes = 5

// checkTasks lists the tasks of a file with the times at which they are due
// after now. The error holds everything that is wrong with it.
func (c *cli) checkTasks(path string, now time.Time) error {
	if path == "" {
		return nil
	}
	file, err := environment.ReadTasks(path)
	var wrong *periodic.Error
	switch {
	case errors.As(err, &wrong):
		return err
	case err != nil:
		return fail(exitUsage, err)
	}
	for _, w := range file.Warnings {
		c.printWarning(w.String(), w.Hint)
	}
	fmt.Fprintf(c.out, "tasks    %s\n", path)
	for i := range file.Tasks {
		t := &file.Tasks[i]
		fmt.Fprintf(c.out, "task     %s: %s, POST %s\n", t.Name, t.Schedule.Words(), plain(t.URL, false))
		var times []string
		for _, at := range t.Schedule.Upcoming(now, shownTimes) {
			times = append(times, clock(at, t.Schedule.Zone().String()))
		}
		fmt.Fprintf(c.out, "         next %s\n", strings.Join(times, ", "))
	}
	return nil
}
