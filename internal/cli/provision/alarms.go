package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/internal/aws"
	"tendril/internal/cli/base"
	"tendril/internal/cloud/alarms"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
	"tendril/internal/environment"
	"tendril/queue"
)

// NewAlarms returns the command 'tendril alarms'.
func NewAlarms(c *base.CLI) *cobra.Command {
	return base.Family("alarms", "Create, show and delete CloudWatch alarms and a dashboard",
		`Manages the CloudWatch alarms and the dashboard of an environment: queue age, dead letters,
failures, latency, health, and a missing leader of the periodic tasks. The arguments are those of
'tendril up'; the environment need not be running.

alarms.yaml in the app's folder changes thresholds. AWS charges for alarms, dashboards and metrics.`,
		newAlarmsApply(c), newAlarmsShow(c), newAlarmsDelete(c))
}

type alarmFlags struct {
	file    string
	actions []string
}

func addAppAndAlarmFlags(c *base.CLI, cmd *cobra.Command) *alarmFlags {
	f := &alarmFlags{}
	cmd.Args = base.OneApp
	base.AddSettings(cmd, func(config.Option) bool { return true })
	addAlarmFlags(c, cmd, f)
	return f
}

func addAlarmFlags(c *base.CLI, cmd *cobra.Command, f *alarmFlags) {
	cmd.Flags().StringVar(&f.file, "alarms-file", "",
		"File that customizes the alarms (default: alarms.yaml in the app's folder).")
	cmd.Flags().StringArrayVar(&f.actions, "action", nil,
		"ARN of an SNS topic to notify; repeatable.")
}

func newAlarmsApply(c *base.CLI) *cobra.Command {
	var prune bool
	cmd := &cobra.Command{
		Use:   "apply [DIR|ZIP] [-- COMMAND ARGS...]",
		Short: "Create or update the alarms and the dashboard",
		Long: `Creates or updates the alarms and the dashboard of the environment, and prints each change.
Applying twice changes nothing. Alarms no longer described are kept unless --prune is given.
Alarms created by other programs are left alone.`,
		Example: `  tendril alarms apply --queue-url URL --environment-name shop --name shop --dry-run
  tendril alarms apply path/to/app --action arn:aws:sns:eu-west-1:123456789012:on-call`,
	}

	f := addAppAndAlarmFlags(c, cmd)
	cmd.Flags().BoolVar(&prune, "prune", false, "Delete alarms of the environment that are no longer described.")
	return base.Changes(c, cmd, func(ctx context.Context, cmd *cobra.Command, args []string) (*base.Plan, error) {
		cloud, want, err := wantedAlarms(ctx, c, cmd, args, f)
		if err != nil {
			return nil, err
		}

		found, err := alarms.Find(ctx, cloud, want.Environment)
		if err != nil {
			return nil, err
		}

		steps, err := alarms.Compare(want, found, prune)
		if err != nil {
			return nil, base.Fail(base.ExitConflict, err)
		}

		notifies := slices.ContainsFunc(want.Alarms, func(a aws.Alarm) bool { return len(a.Actions) > 0 }) ||
			slices.ContainsFunc(found.Alarms, func(a aws.AlarmState) bool { return len(a.Actions) > 0 })
		if !notifies && len(want.Alarms) > 0 {
			c.PrintWarnings(yamlfile.Problem{Text: "these alarms have no one to notify",
				Hint: "name an SNS topic with --action, or with actions in " + alarms.FileName})
		}

		return base.PlanOf(func() ([]string, error) { return stepTexts(steps), nil },
			func() error {
				for _, text := range stepTexts(steps) {
					c.Println(base.Plain(text))
				}
				return alarms.Apply(ctx, cloud, want.Environment, steps)
			}), nil
	})
}

func stepTexts(steps []alarms.Step) (texts []string) {
	for i := range steps {
		s := &steps[i]
		text := fmt.Sprintf("%-6s %s %s", s.Action, s.Kind, s.Name)
		if len(s.Changes) > 0 {
			text += ": " + strings.Join(s.Changes, ", ")
		}
		texts = append(texts, text)
	}
	return texts
}

const asCloudFormation = "cloudformation"

func addTemplateFormat(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVar(format, "format", *format, "Print a template: cloudformation.")
	base.Complete(cmd, "format", asCloudFormation)
}

func checkTemplateFormat(format string) error {
	if format != asCloudFormation {
		return base.Usagef("invalid --format %q", format).Hint("use cloudformation")
	}
	return nil
}

func newAlarmsShow(c *base.CLI) *cobra.Command {
	var text string
	cmd := &cobra.Command{
		Use:   "show [DIR|ZIP] [-- COMMAND ARGS...]",
		Short: "List the alarms with their state, or print them as a CloudFormation template",
		Long: `Lists the alarms of the environment with their state in the cloud. With --format, prints the
alarms and the dashboard as a CloudFormation template (JSON) without calling CloudWatch.`,
		Example: `  tendril alarms show path/to/app
  tendril alarms show path/to/app --format cloudformation > alarms.json`,
	}

	f := addAppAndAlarmFlags(c, cmd)
	output := base.AddOutput(cmd)
	addTemplateFormat(cmd, &text)
	cmd.RunE = base.Verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		if text != "" {
			if err := checkTemplateFormat(text); err != nil {
				return err
			}
		}
		cloud, want, err := wantedAlarms(ctx, c, cmd, args, f)
		if err != nil {
			return err
		}
		if text == "" {
			return showAlarms(ctx, c, cloud, want, *output)
		}

		template, err := want.CloudFormation()
		if err == nil {
			_, err = fmt.Fprint(c.Programs(), template)
		}
		return err
	})

	return cmd
}

type shownAlarm struct {
	aws.Alarm
	State  string    `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	ARN    string    `json:"arn,omitempty"`
	// Status is "in force", "differs", "not created", "not described" or "foreign". Changes lists the differences.
	Status  string   `json:"status"`
	Changes []string `json:"changes,omitempty"`
}

type shownAlarms struct {
	Environment     string       `json:"environment"`
	Region          string       `json:"region"`
	Alarms          []shownAlarm `json:"alarms"`
	Dashboard       string       `json:"dashboard"`
	DashboardStatus string       `json:"dashboardStatus"`
	LeftOut         []string     `json:"leftOut,omitempty"`
}

// statuses maps the action of a pending step to a status.
var statuses = map[string]string{alarms.Create: "not created", alarms.Update: "differs", alarms.Keep: "in force",
	alarms.Remove: "not described"}

func showAlarms(ctx context.Context, c *base.CLI, cloud *aws.CloudWatch, want *alarms.Set, output base.Format) error {
	found, err := alarms.Find(ctx, cloud, want.Environment)
	if err != nil {
		return err
	}
	shown := describeAlarms(want, found)
	shown.Region = cloud.Region()
	names := base.Named(func(a *shownAlarm) string { return a.Name })(shown.Alarms)
	return output.Print(c, shown, names, func() error { return printAlarms(c, shown) })
}

func printAlarms(c *base.CLI, shown *shownAlarms) error {
	rows := [][]string{{"ALARM", "STATE", "SINCE", "STATUS", "CONDITION", "ACTIONS"}}
	for i := range shown.Alarms {
		a := &shown.Alarms[i]
		status := a.Status
		for j, change := range a.Changes {
			property, _, _ := strings.Cut(change, " ")
			status += []string{": ", ", "}[min(j, 1)] + property
		}
		rows = append(rows, []string{a.Name, cmp.Or(a.State, "-"), base.Since(a.Since), status, alarms.Condition(&a.Alarm),
			cmp.Or(strings.Join(a.Actions, " "), "-")})
	}
	rows = append(rows, []string{shown.Dashboard, "-", "-", shown.DashboardStatus, "dashboard"})
	return c.PrintTable(rows)
}

func describeAlarms(want *alarms.Set, found *alarms.Found) *shownAlarms {
	shown := &shownAlarms{Environment: want.Environment, LeftOut: want.LeftOut, Alarms: []shownAlarm{},
		Dashboard: alarms.DashboardName(want.Environment), DashboardStatus: "not described"}
	there := map[string]*aws.AlarmState{}
	for i := range found.Alarms {
		there[found.Alarms[i].Name] = &found.Alarms[i]
	}

	described := map[string]*aws.Alarm{}
	for i := range want.Alarms {
		described[want.Alarms[i].Name] = &want.Alarms[i]
	}

	own := *found
	own.Foreign, own.ForeignDashboard = nil, false
	steps, _ := alarms.Compare(want, &own, true)
	for _, s := range steps {
		if s.Kind != "alarm" {
			shown.DashboardStatus = statuses[s.Action]
			continue
		}
		row := shownAlarm{Status: statuses[s.Action]}
		if s.Action == alarms.Update {
			row.Changes = s.Changes
		}
		if existing := there[s.Name]; existing != nil {
			row.Alarm = existing.Alarm
			row.State = existing.State
			row.Reason = existing.Reason
			row.Since = existing.Since
			row.ARN = existing.ARN
		} else {
			row.Alarm = *described[s.Name]
		}
		shown.Alarms = append(shown.Alarms, row)
	}

	for i := range found.Foreign {
		foreign := &found.Foreign[i]
		for j := range shown.Alarms {
			if shown.Alarms[j].Name == foreign.Name {
				shown.Alarms[j] = shownAlarm{Alarm: foreign.Alarm, State: foreign.State, Reason: foreign.Reason, Since: foreign.Since, ARN: foreign.ARN, Status: "foreign"}
			}
		}
	}

	if found.ForeignDashboard {
		shown.DashboardStatus = "foreign"
	}

	return shown
}

func newAlarmsDelete(c *base.CLI) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete [DIR|ZIP] [-- COMMAND ARGS...]",
		Short: "Delete the alarms and the dashboard of the environment",
		Long: `Deletes the alarms and the dashboard that 'tendril alarms apply' created for this environment,
after a confirmation. Alarms of other environments and programs stay.`,
	}

	f := addAppAndAlarmFlags(c, cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "Do not ask for confirmation.")
	return base.Changes(c, cmd, func(ctx context.Context, cmd *cobra.Command, args []string) (*base.Plan, error) {
		opts, err := alarmSettings(c, cmd, args, f)
		if err != nil {
			return nil, err
		}
		cloud, err := openCloudWatch(ctx, c, &opts)
		if err != nil {
			return nil, err
		}
		name := opts.Config.Name
		found, err := alarms.Find(ctx, cloud, name)
		if err != nil {
			return nil, err
		}
		return base.PlanOf(func() ([]string, error) { return deletions(name, found), nil },
			func() error { return deleteAlarms(ctx, c, cloud, name, found, yes) }), nil
	})
}

func deletions(name string, found *alarms.Found) (texts []string) {
	for i := range found.Alarms {
		texts = append(texts, "delete alarm "+found.Alarms[i].Name)
	}
	if found.Dashboard != "" {
		texts = append(texts, "delete dashboard "+alarms.DashboardName(name))
	}
	return texts
}

func deleteAlarms(ctx context.Context, c *base.CLI, cloud *aws.CloudWatch, name string, found *alarms.Found,
	yes bool) error {
	if len(found.Alarms) == 0 && found.Dashboard == "" {
		c.PrintErrf("environment %s has no alarms and no dashboard in %s\n", name, cloud.Region())
		return nil
	}
	for _, text := range deletions(name, found) {
		c.Println(base.Plain(text))
	}
	what := base.Plural(len(found.Alarms), "alarm")
	if found.Dashboard != "" {
		what += " and the dashboard"
	}
	if err := c.Confirm("delete "+what+" of "+name, name, yes); err != nil {
		return err
	}
	return alarms.Delete(ctx, cloud, found)
}

func wantedAlarms(ctx context.Context, c *base.CLI, cmd *cobra.Command, args []string, f *alarmFlags) (
	*aws.CloudWatch, *alarms.Set, error) {
	opts, err := alarmSettings(c, cmd, args, f)
	if err != nil {
		return nil, nil, err
	}
	cloud, err := openCloudWatch(ctx, c, &opts)
	if err != nil {
		return nil, nil, err
	}
	want, err := describeAlarmSet(ctx, c, &opts, f, cloud.Region())
	if err != nil {
		return nil, nil, err
	}
	for _, text := range want.LeftOut {
		c.PrintErrf("no alarm %s\n", base.Plain(text))
	}
	return cloud, want, nil
}

// alarmSettings parses the arguments as 'tendril up' does.
func alarmSettings(c *base.CLI, cmd *cobra.Command, args []string, f *alarmFlags) (opts environment.Options,
	err error) {
	for _, arn := range f.actions {
		if err := alarms.CheckAction(arn); err != nil {
			return opts, base.Fail(base.ExitUsage, err)
		}
	}
	opts, err = base.PrepareApp(c, cmd, args, c.LookInto)
	if opts.Config != nil {
		err = nil // alarms need no runnable app
	}
	return opts, err
}

// openCloudWatch connects to CloudWatch in the region of the environment's metrics: the configured one, else the one
// in the queue's URL.
func openCloudWatch(ctx context.Context, c *base.CLI, opts *environment.Options) (*aws.CloudWatch, error) {
	cfg := opts.Config
	cloud, err := aws.OpenCloudWatch(ctx, &aws.Options{Region: setRegion(cfg)})
	if err != nil {
		for i := range cfg.Queues {
			if q := &cfg.Queues[i]; q.URL != "" && !cfg.IsSet("region") {
				cloud, err = aws.OpenCloudWatch(ctx, &aws.Options{Region: q.Region})
				break
			}
		}
	}
	if err == nil {
		c.AtEnd(cloud.Close)
	}
	return cloud, err
}

// setRegion returns the configured region; "" means the default of the AWS configuration.
func setRegion(cfg *config.Config) string {
	if cfg.IsSet("region") {
		return cfg.Region
	}
	return ""
}

// describeAlarmSet returns the alarms for the environment. It looks up dead-letter queues on Amazon SQS.
func describeAlarmSet(ctx context.Context, c *base.CLI, opts *environment.Options, f *alarmFlags,
	region string) (*alarms.Set, error) {
	cfg := opts.Config
	s := &alarms.Settings{Environment: cfg.Name, HealthName: cfg.EnvironmentName, Publishes: cfg.CloudWatch == config.On,
		Interval: cfg.MetricsInterval, Periodic: opts.CronFile() != "", Region: region}
	queues, err := alarmQueues(ctx, c, cfg)
	if err != nil {
		return nil, err
	}

	s.Queues = queues
	var names []string
	for _, q := range queues {
		names = append(names, q.Name)
	}

	path, optional := f.file, false
	if path == "" && opts.Bundle != nil {
		path, optional = filepath.Join(opts.Bundle.Dir, alarms.FileName), true
	}

	file := &alarms.File{}
	if path != "" {
		if file, err = alarms.Read(path, optional, names); err != nil {
			if base.ProblemsOf(err) == nil {
				err = base.Fail(base.ExitUsage, err)
			}
			return nil, err
		}
	}

	if b := opts.Bundle; b != nil {
		file.AddBundle(b, s)
		topic, found := b.Setting("aws:elasticbeanstalk:sns:topics", "Notification Topic ARN")
		if found && alarms.CheckAction(topic.Value) == nil {
			s.Actions = []string{topic.Value}
		}
	}

	if len(f.actions) > 0 {
		file.Actions = f.actions
	}

	set := alarms.Describe(s, file)
	return &set, nil
}

func alarmQueues(ctx context.Context, c *base.CLI, cfg *config.Config) (all []alarms.Queue, err error) {
	var sqs *aws.SQS
	for i := range cfg.Queues {
		set := &cfg.Queues[i]
		q := alarms.Queue{Name: set.Name, URL: set.URL, OnSQS: set.Backend == config.BackendSQS,
			Limit: set.InactivityTimeout}
		if set.ToFunction() {
			q.Limit = cfg.FunctionTimeout
		}
		if set.URL != "" {
			q.Region = set.Region
		}
		if q.OnSQS {
			if sqs == nil {
				if sqs, err = aws.OpenSQS(ctx, &aws.Options{Region: setRegion(cfg), Endpoint: cfg.EndpointURL}); err != nil {
					return nil, err
				}
				defer sqs.Close()
			}
			if err := lookUp(ctx, sqs, cmp.Or(set.URL, set.Name), &q); err != nil {
				return nil, err
			}
		}
		all = append(all, q)
	}

	return all, nil
}

func lookUp(ctx context.Context, sqs *aws.SQS, reference string, q *alarms.Queue) error {
	found, err := sqs.Queue(ctx, reference)
	if err != nil {
		return err
	}

	attributes, err := found.Attributes(ctx)
	if errors.Is(err, queue.ErrDenied) {
		return base.Fail(base.ExitUnreachable, fmt.Errorf("looking up the dead-letter queue of %s: %w", found.Name(), err),
			"allow these credentials sqs:GetQueueAttributes")
	}

	if err != nil {
		return err
	}

	q.Name = found.Name()
	q.URL = found.URL()
	q.ARN = attributes["QueueArn"]
	dead, _ := queue.ParseRedrivePolicy(attributes["RedrivePolicy"])
	q.DeadLetter = base.AfterColon(dead)
	return nil
}
