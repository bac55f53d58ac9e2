package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"tendril/internal/aws"
	"tendril/internal/bundle"
	"tendril/internal/cli/base"
	"tendril/internal/cli/generate"
	"tendril/internal/cloud/alarms"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
	"tendril/internal/environment"
	"tendril/queue"
)

type alarmFlags struct {
	file    string
	actions []string
}

func newAlarms(c *base.CLI) *cobra.Command {
	cmd := newAlarmFile(c, "alarms", "Print a CloudFormation template of the alarms and the dashboard",
		func(set *alarms.Set) (generate.File, error) {
			notifies := func(a alarms.Alarm) bool { return len(a.Actions) > 0 }
			if len(set.Alarms) > 0 && !slices.ContainsFunc(set.Alarms, notifies) {
				c.PrintWarnings(yamlfile.Problem{Text: "these alarms notify no one",
					Hint: "name an SNS topic with --action, or with actions in " + alarms.FileName})
			}
			template, err := set.CloudFormation()
			return generate.File{Path: "alarms.json", Text: template}, err
		})
	cmd.Long = `Prints a CloudFormation template (JSON) of the CloudWatch alarms and the dashboard of an environment:
queue age, dead letters, failures, latency, health, and a missing leader of the periodic tasks.

alarms.yaml in the app's folder changes thresholds. AWS charges for alarms, dashboards and metrics.`
	cmd.Example = `  tendril generate alarms path/to/app --file alarms.json
  aws cloudformation deploy --stack-name tendril-shop --template-file alarms.json`
	return cmd
}

func newDashboard(c *base.CLI) *cobra.Command {
	return newAlarmFile(c, "dashboard", "Print the body of the CloudWatch dashboard",
		func(set *alarms.Set) (generate.File, error) {
			return generate.File{Path: alarms.DashboardName(set.Environment) + ".json", Text: set.Dashboard + "\n"}, nil
		})
}

func newAlarmFile(c *base.CLI, name, short string, file func(*alarms.Set) (generate.File, error)) *cobra.Command {
	f := &alarmFlags{}
	cmd := newGenerator(c, name, short, func(ctx context.Context, cmd *cobra.Command,
		args []string) ([]generate.File, error) {
		set, err := wantedAlarms(ctx, c, cmd, args, f)
		if err != nil {
			return nil, err
		}
		made, err := file(set)
		return []generate.File{made}, err
	})
	cmd.Flags().StringVar(&f.file, "alarms-file", "",
		"File that customizes the alarms (default: alarms.yaml in the app's folder).")
	cmd.Flags().StringArrayVar(&f.actions, "action", nil,
		"ARN of an SNS topic to notify; repeatable.")
	return cmd
}

func wantedAlarms(ctx context.Context, c *base.CLI, cmd *cobra.Command, args []string, f *alarmFlags) (*alarms.Set, error) {
	for _, arn := range f.actions {
		if err := alarms.CheckAction(arn); err != nil {
			return nil, base.Fail(base.ExitUsage, err)
		}
	}

	opts, err := base.PrepareApp(c, cmd, args, c.OpenForInspection)
	if opts.Config == nil { // the app is not needed
		return nil, err
	}

	region, err := alarmRegion(ctx, opts.Config)
	if err != nil {
		return nil, err
	}
	set, err := describeAlarmSet(ctx, &opts, f, region)
	if err != nil {
		return nil, err
	}

	for _, text := range set.LeftOut {
		c.PrintErrf("no alarm %s\n", base.Plain(text))
	}
	return set, nil
}

func alarmRegion(ctx context.Context, cfg *config.Config) (string, error) {
	cloudWatch, err := aws.OpenCloudWatch(ctx, &aws.Options{Region: chosenRegion(cfg)})
	if err == nil {
		defer cloudWatch.Close()
		return cloudWatch.Region(), nil
	}
	for i := range cfg.Queues {
		if q := &cfg.Queues[i]; q.URL != "" && !cfg.IsSet("region") {
			return q.Region, nil
		}
	}
	return "", err
}

func chosenRegion(cfg *config.Config) string {
	if cfg.IsSet("region") {
		return cfg.Region
	}
	return ""
}

func describeAlarmSet(ctx context.Context, opts *environment.Options, f *alarmFlags, region string) (*alarms.Set, error) {
	cfg := opts.Config
	queues, err := alarmQueues(ctx, cfg)
	if err != nil {
		return nil, err
	}
	file, err := readAlarmFile(f.file, opts.Bundle, queues)
	if err != nil {
		return nil, err
	}

	s := &alarms.Settings{Environment: cfg.Name, HealthName: cfg.EnvironmentName, Publishes: cfg.CloudWatch == config.On,
		Interval: cfg.MetricsInterval, Periodic: opts.CronFile() != "", Region: region, Queues: queues}
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

func readAlarmFile(path string, b *bundle.Bundle, queues []alarms.Queue) (*alarms.File, error) {
	optional := path == ""
	if optional && b == nil {
		return &alarms.File{}, nil
	}
	if optional {
		path = filepath.Join(b.Dir, alarms.FileName)
	}

	names := base.Named(func(q *alarms.Queue) string { return q.Name })(queues)
	file, err := alarms.Read(path, optional, names)
	if err != nil && base.ProblemsOf(err) == nil {
		return nil, base.Fail(base.ExitUsage, err)
	}
	return file, err
}

func alarmQueues(ctx context.Context, cfg *config.Config) (all []alarms.Queue, err error) {
	var sqs *aws.SQS
	if cfg.AnyOnSQS() {
		sqs, err = aws.OpenSQS(ctx, &aws.Options{Region: chosenRegion(cfg), Endpoint: cfg.EndpointURL})
		if err != nil {
			return nil, err
		}
		defer sqs.Close()
	}

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
			if err := fillFromSQS(ctx, sqs, cmp.Or(set.URL, set.Name), &q); err != nil {
				return nil, err
			}
		}
		all = append(all, q)
	}
	return all, nil
}

func fillFromSQS(ctx context.Context, sqs *aws.SQS, reference string, q *alarms.Queue) error {
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
	q.DeadLetter = queue.NameInARN(dead)
	return nil
}
