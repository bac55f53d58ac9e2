package settings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/bundle/machine"
	"tendril/internal/cli/base"
	"tendril/internal/cli/provision"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
	"tendril/internal/cron/tasks"
	"tendril/internal/environment"
	"tendril/queue"
)

// NewCheck returns the command 'tendril check'.
func NewCheck(c *base.CLI) *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "check [DIR|ZIP] [-- COMMAND ARGS...]",
		Short: "Validate settings, bundle and periodic tasks, offline",
		Long: `Reads the settings and the bundle like 'tendril up' with the same arguments. Reports mistakes
(exit status 2), ports in use (7), warnings, and unused parts of the bundle. Lists the steps of a
deployment, the settings and environment properties of the bundle with file and line, and the
next five runs of each periodic task. Starts and changes nothing, and uses no network.

--iam prints only the IAM policy that the environment's role needs on AWS with these settings;
--iam=operate prints the policy for people who run 'tendril dead', 'peek', 'queues' and 'terminate'.`,
		Example: `  tendril check examples/thumbnails
  tendril check --iam --backend sqs --name orders > policy.json`,
		Args: base.OneApp,
	}

	base.AddSettings(cmd)
	cmd.Flags().StringVar(&role, "iam", "", "Print the IAM policy of a role: run or operate.")
	cmd.Flags().Lookup("iam").NoOptDefVal = provision.RoleRun
	base.Complete(cmd, "iam", provision.RoleRun, provision.RoleOperate)
	f := base.AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch role {
		case "":
			return checkApp(c, cmd, args, *f)
		case provision.RoleRun, provision.RoleOperate:
			policy, err := provision.IamPolicy(c, cmd, args, role)
			if err != nil || policy == nil {
				return err
			}
			return c.PrintJSON(policy)
		}
		return base.Usagef("invalid --iam %q", role).Hint("use run or operate")
	}

	return cmd
}

type checkReport struct {
	cli      *base.CLI
	OK       bool          `json:"ok"`
	Items    []checkedItem `json:"items"`
	Warnings []base.Notice `json:"warnings"`
	Problems []base.Notice `json:"problems"`
}

type checkedItem struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Text string `json:"text"` // to display; includes the name
	Next string `json:"next,omitempty"`
}

func (r *checkReport) add(kind, name, text string) {
	r.Items = append(r.Items, checkedItem{Kind: kind, Name: name, Text: text})
}

func (r *checkReport) warn(warnings ...yamlfile.Problem) {
	r.cli.PrintWarnings(warnings...)
	for _, w := range warnings {
		r.Warnings = append(r.Warnings, base.NoticeOf(w))
	}
}

// show omits warnings and problems, which are already on standard error.
func (r *checkReport) show() error {
	for _, i := range r.Items {
		r.cli.Printf("%-8s %s\n", i.Kind, base.Plain(i.Text))
		if i.Next != "" {
			r.cli.Printf("%-8s next %s\n", "", i.Next)
		}
	}
	if r.OK {
		r.cli.Println("ok")
	}
	return nil
}

func (r *checkReport) names() (names []string) {
	for _, i := range r.Items {
		names = append(names, i.Kind+"/"+i.Name)
	}
	return names
}

func checkApp(c *base.CLI, cmd *cobra.Command, args []string, f base.Format) error {
	r := &checkReport{cli: c, Items: []checkedItem{}, Warnings: []base.Notice{}}
	err := fillReport(c, cmd, args, r)
	r.OK = err == nil
	r.Problems = append([]base.Notice{}, base.NoticesOf(err)...)
	return errors.Join(err, f.Print(c, r, r.names(), r.show))
}

func fillReport(c *base.CLI, cmd *cobra.Command, args []string, r *checkReport) error {
	opts, appErr := base.PrepareApp(c, cmd, args, c.OpenForInspection)
	if opts.Config == nil {
		return appErr
	}

	if appErr == nil {
		appErr = base.TakeFreePorts(c, cmd, &opts)
		if opts.Announced != nil {
			opts.Announced()
		}
	}

	// Without a runnable app, check everything else nevertheless.
	cfg := opts.Config
	r.warn(cfg.Warnings...)
	if err := r.addBundle(&opts); err != nil {
		return err
	}

	if len(opts.Command) > 0 {
		r.add("process", bundle.MainProcess, bundle.MainProcess+": "+strings.Join(opts.Command, " "))
	}

	r.addTasks(opts.CronFile(), time.Now())
	if cfg.ConfigFile != "" {
		r.add("file", cfg.ConfigFile, cfg.ConfigFile)
	}

	for _, q := range cfg.Queues {
		r.add("queue", q.Name, queueText(&q))
	}

	if text := scaledText(&cfg.Settings); text != "" {
		r.add("scaling", cfg.ScaleTarget, text)
	}

	return errors.Join(appErr, opts.Validate(), r.checkPorts(&opts))
}

// checkPorts only warns if an environment is running on the data directory, because that environment uses the ports.
func (r *checkReport) checkPorts(opts *environment.Options) error {
	if i, err := api.ReadInstance(opts.Config.DataDir); err == nil {
		r.warn(yamlfile.Problem{
			Text: fmt.Sprintf("environment %q runs on %s, process %d: 'tendril up' would fail", i.Environment,
				opts.Config.DataDir, i.PID),
			Hint: "'tendril deploy' replaces the running version; a second environment needs another --name"})
		return nil
	}
	return opts.ProbePorts()
}

func queueText(q *config.QueueSettings) string {
	text := cmp.Or(q.URL, fmt.Sprintf("%s (%s)", q.Name, q.Backend))
	if q.Managed {
		text = fmt.Sprintf("%s (%s, created with %s if missing)", q.Name, q.Backend, queue.DeadLetterName(q.Name))
	}
	if q.Weight > 0 {
		text += fmt.Sprintf(", weight %d", q.Weight)
	}

	switch {
	case q.Function != "":
		text += " to the function " + q.Function
	case q.Lambda != "":
		text += " to the local function: " + q.Lambda
	case q.Target != "":
		text += " to " + q.Target + q.HTTPPath
	}

	return text
}

func scaledText(s *config.Settings) string {
	processes := fmt.Sprintf("%d to %d processes of the app", s.ProcessesMin, s.ProcessesMax)
	switch {
	case s.ScaleTarget == config.ScaleNone:
		return ""
	case s.ScaleTarget == config.ScaleProcesses:
		return processes
	case s.ScaleTarget == config.ScalePublish:
		return "publishes the backlog per instance and the age of the oldest message"
	case s.ScalesInstances():
		return base.Plain(s.ScaleTarget)
	}

	instances := fmt.Sprintf("%d to %d instances of its Auto Scaling group or ECS service, unless something else "+
		"scales it", s.ScaleMinSize, s.ScaleMaxSize)
	switch {
	case !s.AnyToOwnApp():
		return instances
	case !s.AnyOnSQS():
		return processes
	}

	return instances + "; " + processes + " elsewhere"
}

const shownTimes = 5

func (r *checkReport) addTasks(path string, now time.Time) {
	if path == "" {
		return
	}
	file, err := tasks.Read(path)
	if err != nil {
		return // Validate reports it
	}
	r.warn(file.Warnings...)
	r.add("tasks", path, path)
	for i := range file.Tasks {
		t := &file.Tasks[i]
		var times []string
		for _, at := range t.Schedule.Upcoming(now, shownTimes) {
			times = append(times, base.Clock(at, t.Schedule.Zone().String()))
		}
		r.Items = append(r.Items, checkedItem{"task", t.Name, fmt.Sprintf("%s: %s, POST %s", t.Name, t.Schedule.Words(),
			config.WithoutQuery(t.URL)), strings.Join(times, ", ")})
	}
}

// addBundle omits the bundle's processes if a command is given as an argument, because the command replaces them.
func (r *checkReport) addBundle(opts *environment.Options) error {
	cfg, b := opts.Config, opts.Bundle
	if b == nil {
		return nil
	}

	r.warn(slices.Concat(b.Warnings, opts.MissingPrograms())...)
	if len(opts.Command) == 0 && len(b.Processes) > 0 {
		r.addSteps(b, opts.AppliesMachine())
	}
	if err := r.addSettings(cfg, b); err != nil {
		return err
	}

	for _, p := range b.Environment() {
		if opts.Withheld(p) == "" {
			value, from := settingInForce(r.cli, p)
			r.add("property", p.Option, fmt.Sprintf("%s=%s (%s)", p.Option, value, from))
		}
	}

	for _, l := range b.Links {
		if queue := opts.LinkedQueue(l); queue != "" {
			r.add("link", l.Variable, fmt.Sprintf("%s to the queue %s (%s)", l.Variable, queue, base.Position(l.File, l.Line)))
		}
	}

	for _, f := range environment.NotUsed(opts) {
		r.add("not used", f.File, f.String())
	}

	return nil
}

func (r *checkReport) addSteps(b *bundle.Bundle, appliesMachine bool) {
	if appliesMachine {
		for _, step := range machine.Plan(&b.Machine) {
			r.addMachineStep(&step)
		}
	}
	for _, step := range b.Plan() {
		r.addStep(step)
	}
}

func (r *checkReport) addStep(s bundle.Step) {
	switch {
	case s.Phase == bundle.PhaseStart:
		r.add("process", s.Name, s.Name+": "+s.Shell)
	case s.Phase == bundle.PhaseCommand:
		r.add(string(s.Phase), s.Name, fmt.Sprintf("%s: %s (%s)", s.Name, s.Shown, base.Position(s.File, s.Line)))
	case s.Shell != "":
		r.add(string(s.Phase), s.Name, fmt.Sprintf("%s: %s (%s)", s.Name, s.Shell, base.Position(s.File, s.Line)))
	default:
		r.add("hook", s.Name, s.Name)
	}
}

func (r *checkReport) addMachineStep(s *machine.Step) {
	text := s.Title()
	if s.Text != "" {
		text += ": " + s.Text
	}
	r.add("machine", s.Title(), fmt.Sprintf("%s (%s)", text, base.Position(s.Place.File, s.Place.Line)))
}

func (r *checkReport) addSettings(cfg *config.Config, b *bundle.Bundle) error {
	for _, o := range config.Options() {
		from := cfg.Origin(o.Name)
		isFolderName := from.Where == b.Dir
		if from.Layer != config.FromBundle || isFolderName || cfg.Idle(o.Name) {
			continue
		}
		e, err := cfg.Explain(o.Name)
		if err != nil {
			return err
		}
		r.add("setting", o.Name, fmt.Sprintf("%s = %s (%s)", o.Name, e.Value, from.Where))
	}
	return nil
}
