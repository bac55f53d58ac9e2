package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/bundle"
	"tendril/cloud"
	"tendril/config"
	"tendril/console"
	"tendril/environment"
	"tendril/machine"
	"tendril/tasks"
	"tendril/yamlfile"
)

func (c appCommands) newCheck() *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "check [DIR|ZIP] [-- COMMAND ARGS...]",
		Short: "Validate settings, bundle and periodic tasks, offline",
		Long: `Reads what 'tendril up' would read with the same arguments. Reports mistakes (exit status
2), ports in use (7), warnings, and what of the bundle is not used. Lists the steps of a
deployment, the settings and environment properties of the bundle with file and line, and
the next five runs of each periodic task. Starts and changes nothing, and uses no network.

With --iam it prints the IAM policy that the environment's role needs on AWS with these
settings, and nothing else; with --iam=operate the one for whoever runs dead, peek, queues
and terminate.`,
		Example: `  tendril check examples/thumbnails
  tendril check --iam --backend sqs --name orders > policy.json`,
		Args: oneApp,
	}
	addSettings(cmd, func(config.Option) bool { return true })
	cmd.Flags().StringVar(&role, "iam", "", "Print the IAM policy of a role: run or operate.")
	cmd.Flags().Lookup("iam").NoOptDefVal = roleRun
	complete(cmd, "iam", roleRun, roleOperate)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch role {
		case "":
			return c.check(cmd, args)
		case roleRun, roleOperate:
			return c.printPolicy(cmd, args, role)
		}
		return fail(exitUsage, fmt.Errorf("--iam=%s is not known", role), "use run or operate")
	}
	return cmd
}

// The roles of --iam.
const (
	roleRun     = "run"     // the environment's
	roleOperate = "operate" // that of whoever types commands about its queues
)

// printPolicy prints the IAM policy that the settings need.
func (c appCommands) printPolicy(cmd *cobra.Command, args []string, role string) error {
	policy, err := c.policy(cmd, args, role)
	if err != nil || policy == nil {
		return err
	}
	return c.printJSON(policy)
}

// policy is the IAM policy that the settings need; nil where they need none, which is told.
func (c appCommands) policy(cmd *cobra.Command, args []string, role string) (*cloud.Policy, error) {
	done := func() {}
	defer func() { done() }()
	opts, err := c.prepare(cmd, args, func(path string) (b *bundle.Bundle, err error) {
		b, done, err = c.lookInto(path)
		return b, err
	})
	if opts.Config == nil { // else there is only no app to run, which does not matter here
		return nil, err
	}
	use := &cloud.Use{Operate: role == roleOperate}
	if path := opts.CronFile(); path != "" {
		file, err := tasks.Read(path)
		if err != nil {
			return nil, err
		}
		for _, t := range file.Tasks {
			use.TaskQueues = append(use.TaskQueues, t.Queue)
		}
	}
	policy := cloud.PolicyFor(opts.Config, use)
	if len(policy.Statement) == 0 {
		fmt.Fprintln(c.err, "these settings need no permissions on AWS")
		return nil, nil
	}
	for _, q := range opts.Config.Queues {
		if q.Backend == config.BackendSQS && !q.Managed {
			c.warn(yamlfile.Problem{Text: "the dead-letter queue of " + q.Name + " is not known here",
				Hint: "write its name in place of " + cloud.UnknownDeadLetterQueue + q.Name})
		}
	}
	return policy, nil
}

func (c appCommands) check(cmd *cobra.Command, args []string) error {
	done := func() {}
	defer func() { done() }()
	opts, err := c.prepare(cmd, args, func(path string) (b *bundle.Bundle, err error) {
		b, done, err = c.lookInto(path)
		return b, err
	})
	if opts.Config == nil {
		return err
	}
	if err == nil { // 'tendril up' would take other ports where the default ones are taken
		err = c.takeFreePorts(cmd, &opts)
		if opts.Announced != nil {
			opts.Announced()
		}
	}
	refused := []error{err} // where there is no app to run, the rest is looked at all the same
	cfg := opts.Config
	c.warn(cfg.Warnings...)
	if err := c.checkBundle(&opts); err != nil {
		return err
	}
	if len(opts.Command) > 0 {
		fmt.Fprintf(c.out, "process  %s: %s\n", bundle.MainProcess, plain(strings.Join(opts.Command, " ")))
	}
	c.listTasks(opts.CronFile(), time.Now())
	if cfg.ConfigFile != "" {
		fmt.Fprintf(c.out, "file     %s\n", cfg.ConfigFile)
	}
	for _, q := range cfg.Queues {
		fmt.Fprintf(c.out, "queue    %s\n", queueText(&q))
	}
	if text := scaledText(&cfg.Settings); text != "" {
		fmt.Fprintf(c.out, "scaling  %s\n", text)
	}
	refused = append(refused, opts.Validate(), c.checkPorts(&opts))
	if err := errors.Join(refused...); err != nil {
		return err
	}
	fmt.Fprintln(c.out, "ok")
	return nil
}

// checkPorts looks whether the ports are free. Where an environment runs on the data
// directory they are its own, and what is checked is to be deployed there.
func (c appCommands) checkPorts(opts *environment.Options) error {
	if i, err := console.ReadInstance(opts.Config.DataDir); err == nil {
		c.warn(yamlfile.Problem{
			Text: fmt.Sprintf("environment %q runs on %s, process %d: 'tendril up' would be refused", i.Environment,
				opts.Config.DataDir, i.PID),
			Hint: "'tendril deploy' puts this in the place of what it runs; a second environment needs another --name"})
		return nil
	}
	return opts.ProbePorts()
}

func queueText(q *config.QueueSettings) string {
	text := q.URL
	if text == "" {
		text = fmt.Sprintf("%s (%s)", q.Name, q.Backend)
	}
	if q.Managed {
		text = fmt.Sprintf("%s (%s, created with %s if missing)", q.Name, q.Backend, cloud.DeadLetterName(q.Name))
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

// scaledText says what is scaled, and between which bounds; "" for nothing. Which group this instance is in is
// not asked here.
func scaledText(s *config.Settings) string {
	processes := fmt.Sprintf("%d to %d processes of the app", s.ProcessesMin, s.ProcessesMax)
	switch {
	case s.ScaleTarget == config.ScaleNone:
		return ""
	case s.ScaleTarget == config.ScaleProcesses:
		return processes
	case s.ScaleTarget == config.ScalePublish:
		return "publishes the backlog of each instance"
	case s.ScalesInstances():
		return plain(s.ScaleTarget)
	}
	instances := fmt.Sprintf("%d to %d instances of the Auto Scaling group or ECS service that this one is in, unless "+
		"something else scales it", s.ScaleMinSize, s.ScaleMaxSize)
	switch {
	case !s.AnyToOwnApp():
		return instances
	case !s.AnyOnSQS():
		return processes
	}
	return instances + "; " + processes + " where it is in none"
}

const shownTimes = 5

// listTasks lists the tasks of a file with the times at which they are due after
// now. What is wrong with the file is told with the other problems.
func (c appCommands) listTasks(path string, now time.Time) {
	file, err := tasks.Read(path)
	if path == "" || err != nil {
		return
	}
	c.warn(file.Warnings...)
	fmt.Fprintf(c.out, "tasks    %s\n", path)
	for i := range file.Tasks {
		t := &file.Tasks[i]
		fmt.Fprintf(c.out, "task     %s: %s, POST %s\n", t.Name, t.Schedule.Words(), plain(t.URL))
		var times []string
		for _, at := range t.Schedule.Upcoming(now, shownTimes) {
			times = append(times, clock(at, t.Schedule.Zone().String()))
		}
		fmt.Fprintf(c.out, "         next %s\n", strings.Join(times, ", "))
	}
}

// checkBundle prints what is in a bundle: the steps of a deployment in their order, what it sets, and what is not
// used. A command runs in the place of the bundle's own processes.
func (c appCommands) checkBundle(opts *environment.Options) error {
	cfg, b := opts.Config, opts.Bundle
	if b == nil {
		return nil
	}
	c.warn(slices.Concat(b.Warnings, opts.MissingPrograms())...)
	if len(opts.Command) == 0 && len(b.Processes) > 0 {
		if opts.AppliesMachine() {
			for _, step := range machine.Plan(&b.Machine) {
				fmt.Fprintln(c.out, machineLine(&step))
			}
		}
		for _, step := range b.Plan() {
			fmt.Fprintln(c.out, stepLine(step))
		}
	}
	if err := c.checkSettings(cfg, b); err != nil {
		return err
	}
	for _, p := range b.Environment() {
		if opts.Withheld(p) == "" {
			value, from := explainCommand{c}.inForce(p)
			fmt.Fprintf(c.out, "property %s=%s (%s)\n", plain(p.Option), value, from)
		}
	}
	for _, l := range b.Links {
		if queue := opts.LinkedQueue(l); queue != "" {
			fmt.Fprintf(c.out, "link     %s to the queue %s (%s)\n", plain(l.Variable), plain(queue), position(l.File, l.Line))
		}
	}
	for _, f := range environment.NotUsed(opts) {
		fmt.Fprintf(c.out, "not used %s\n", plain(f.String()))
	}
	return nil
}

// stepLine is one step of a deployment. Processes stay, so that they have a word of their own.
func stepLine(s bundle.Step) string {
	if s.Phase == bundle.PhaseStart {
		return fmt.Sprintf("process  %s: %s", s.Name, plain(s.Shell))
	}
	if s.Phase == bundle.PhaseCommand {
		return fmt.Sprintf("%-8s %s: %s (%s)", s.Phase, plain(s.Name), plain(s.Shown), position(s.File, s.Line))
	}
	if s.Shell != "" {
		return fmt.Sprintf("%-8s %s: %s (%s)", s.Phase, s.Name, plain(s.Shell), position(s.File, s.Line))
	}
	return "hook     " + plain(s.Name)
}

// machineLine is one step that changes the machine.
func machineLine(s *machine.Step) string {
	text := s.Title()
	if s.Text != "" {
		text += ": " + s.Text
	}
	return fmt.Sprintf("machine  %s (%s)", plain(text), position(s.File, s.Line))
}

// checkSettings prints the options whose value in force is one of the bundle's
// settings; the folder's name does not count as one.
func (c appCommands) checkSettings(cfg *config.Config, b *bundle.Bundle) error {
	for _, o := range config.Options() {
		from := cfg.Origin(o.Name)
		if from.Layer != config.FromBundle || from.Where == b.Dir || cfg.Idle(o.Name) {
			continue
		}
		e, err := cfg.Explain(o.Name)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "setting  %s = %s (%s)\n", o.Name, plain(e.Value), plain(from.Where))
	}
	return nil
}
