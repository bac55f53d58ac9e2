package inspect

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/observe/doctor"
)

const doctorTimeout = 25 * time.Second

// NewDoctor returns the command 'tendril doctor'.
func NewDoctor(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [DIR|ZIP] [-- COMMAND ARGS...]",
		Short: "Check settings, machine and servers for problems, and suggest fixes",
		Long: `Compares the settings in force with the machine, queues and servers, and prints one line per check,
the worst first. Below each problem it prints the consequence and the fix. Nothing is started or
changed.

It checks queues and dead-letter queues (visibility timeout, retention, number of attempts),
permissions on AWS, clocks, the app, proxies in front of it, ports, certificates, disk, open files,
time zones, and the running version.

Asks the environment that runs on the data directory. If none is running, or with a folder, a command
or flags of 'tendril up', it checks the environment that 'tendril up' would run. 'tendril check'
validates the settings themselves.

Exit status: 0 without errors, 1 with errors; warnings do not count.`,
		Example: `  tendril doctor
  tendril doctor path/to/app
  tendril doctor --queue-url URL -o json`,
		Args: base.OneApp,
	}

	base.AddSettings(cmd)
	base.AddEnvironment(cmd)
	f := base.AddOutput(cmd)
	cmd.RunE = base.Verb(func(ctx context.Context, args []string) error {
		ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
		defer cancel()
		e, err := examineEnvironment(ctx, c, cmd, args)
		if err != nil {
			return err
		}
		err = f.Print(c, e, base.Named(func(f *doctor.Finding) string { return f.ID })(e.Findings), func() error {
			printFindings(c, e)
			return nil
		})
		if errs := countLevel(e.Findings, doctor.Error); err == nil && errs > 0 {
			return base.Failedf("%s found", base.Plural(errs, "error"))
		}
		return err
	})

	return cmd
}

func examineEnvironment(ctx context.Context, c *base.CLI, cmd *cobra.Command, args []string) (*doctor.Examination, error) {
	client, err := dialUnlessOther(c, cmd, quotedFirst(args))
	if err != nil {
		return nil, err
	}

	if client != nil {
		return examineRunning(ctx, c, client)
	}

	opts, err := base.PrepareApp(c, cmd, args, c.OpenForInspection)
	if opts.Config == nil {
		return nil, err
	}

	e := opts.Examine(ctx)
	if err != nil {
		hint := ""
		if hints := base.HintsOf(err); len(hints) > 0 {
			hint = hints[0]
		}
		e.Add(doctor.Finding{Level: doctor.Error, ID: "settings", What: err.Error(), Why: "'tendril up' would fail",
			Remedy: hint})
	}

	return &e, nil
}

func examineRunning(ctx context.Context, c *base.CLI, client *api.Client) (*doctor.Examination, error) {
	e, err := client.Examine(ctx)
	if err != nil {
		return nil, err
	}
	i := &client.Instance
	e.Add(doctor.Versions(c.Version, i.Version, otherProgram(i.Program)))
	return &e, nil
}

func otherProgram(theirs api.Program) string {
	program := api.ThisProgram()
	if program.ID == "" || program.ID == theirs.ID {
		return ""
	}
	return theirs.Path
}

func countLevel(all []doctor.Finding, level doctor.Level) (n int) {
	for i := range all {
		if all[i].Level == level {
			n++
		}
	}
	return n
}

func printFindings(c *base.CLI, e *doctor.Examination) {
	about := "'tendril up' would run"
	if e.Running {
		about = "the running environment"
	}

	c.Printf("%s %s\n", about, base.Plain(e.Environment))
	const below = "                                " // as wide as the level and the ID
	for i := range e.Findings {
		f := &e.Findings[i]
		c.Printf("%-8s %-22s %s\n", f.Level, f.ID, base.Plain(f.What))
		if f.Why != "" {
			c.Printf("%s%s\n", below, base.Plain(f.Why))
		}
		if f.Remedy != "" {
			c.Printf("%shint: %s\n", below, base.Plain(f.Remedy))
		}
	}

	c.Printf("%s, %s, %d ok\n", base.Plural(countLevel(e.Findings, doctor.Error), "error"),
		base.Plural(countLevel(e.Findings, doctor.Warning), "warning"), countLevel(e.Findings, doctor.OK))
}
