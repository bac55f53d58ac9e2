package provision

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/internal/cloud"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
	"tendril/internal/environment"
	"tendril/queue"
)

// NewTerminate returns the command 'tendril terminate'.
func NewTerminate(c *base.CLI) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "terminate [DIR|ZIP]",
		Short: "Delete the queues, tables and data that an environment created",
		Long: `Lists the resources created by the environment of these settings, with the number of messages, and
deletes them after you type the environment's name. Give it the arguments and the settings file of
'tendril up'.

On Amazon SQS these are the resources with the tag tendril:environment and the environment's name:
the queue and dead-letter queue created by 'tendril up', and the registry table of --registry-create
unless another environment uses it. Embedded queues are deleted with the whole data directory.
Stacks of 'tendril generate alarms' stay: delete them with CloudFormation.

Stop the environment first, on every machine; the command fails while it runs on this data
directory.`,
		Example: `  tendril terminate examples/thumbnails
  tendril terminate --name orders --backend sqs --region eu-west-1 --yes orders`,
		Args: base.OneApp,
	}

	base.AddSettings(cmd)
	cmd.Flags().StringVar(&name, "yes", "", "Name of the environment, to delete it without confirmation.")
	return base.Changes(c, cmd, func(ctx context.Context, args []string) (*base.Plan, error) {
		opts, err := base.PrepareApp(c, cmd, args, c.OpenForInspection)
		if opts.Config == nil { // the app is not needed
			return nil, err
		}
		return planTermination(ctx, c, opts.Config, name)
	})
}

// terminateTimeout limits the search for resources, and separately their deletion.
const terminateTimeout = 5 * time.Minute

func planTermination(ctx context.Context, c *base.CLI, cfg *config.Config, yes string) (*base.Plan, error) {
	if yes != "" && yes != cfg.Name {
		return nil, base.Usagef("--yes %s is not the name of this environment, %s", yes, cfg.Name).
			Hint("give the settings of the environment to delete, for example with --name or --config")
	}

	t := &termination{cli: c, cfg: cfg}
	c.AtEnd(t.close)
	if err := t.open(ctx); err != nil {
		return nil, err
	}

	doomed, err := t.printResources()
	if err != nil {
		return nil, err
	}

	if doomed == 0 {
		c.PrintErrf("environment %q has nothing to delete\n", cfg.Name)
		return base.PlanOf(base.Step("delete nothing"), func() error { return nil }), nil
	}

	would := base.Step("delete the listed resources of environment %s with all messages", cfg.Name)
	return base.PlanOf(would, func() error {
		const act = "delete the listed resources with all messages"
		if err := c.Confirm(act, cfg.Name, "--yes "+cfg.Name, yes != ""); err != nil {
			return err
		}
		return t.delete(ctx)
	}), nil
}

type termination struct {
	cli       *base.CLI
	cfg       *config.Config
	inventory *cloud.Inventory
	plan      []cloud.Resource
	data      *environment.DataDirectory
}

func (t *termination) open(ctx context.Context) (err error) {
	if t.data, err = environment.OpenDataDirectory(t.cfg.DataDir); err != nil {
		return err
	}
	if t.inventory, err = cloud.Open(ctx, &cloud.Environment{Config: t.cfg}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, terminateTimeout)
	defer cancel()
	t.plan, err = t.inventory.Plan(ctx)
	return err
}

func (t *termination) close() {
	if t.data != nil {
		_ = t.data.Close()
	}
	if t.inventory != nil {
		t.inventory.Close()
	}
}

// deletesData is false without embedded queues: the directory may then not belong to this environment.
func (t *termination) deletesData() bool { return t.data.Path != "" && t.cfg.AnyEmbedded() }

func (t *termination) printResources() (doomed int, err error) {
	rows := base.Table{{"ACTION", "WHAT", "NAME", "MESSAGES", "NOTE"}}
	for i := range t.plan {
		r := &t.plan[i]
		action := "keep"
		if r.Owned {
			doomed++
			action = "delete"
		}
		rows = append(rows, []string{action, r.Kind, r.Name, countText(r.Messages), r.Note})
		if n := target.Counts(r.Attributes).InFlight; r.Owned && n > 0 {
			t.cli.PrintWarnings(yamlfile.Problem{Text: fmt.Sprintf("%s has %s in flight: stop the environment on "+
				"every machine first", r.Name, base.Plural(int(n), "message"))})
		}
	}

	if t.deletesData() {
		doomed++
		rows = append(rows, []string{"delete", "data directory", t.data.Path})
		for _, q := range t.data.Queues {
			rows = append(rows, []string{"delete", "embedded queue", q.Name, countText(&q.Messages)})
		}
	}

	if t.cfg.Versions != "" {
		rows = append(rows, []string{"keep", "app archives", t.cfg.Versions, "-", "delete them yourself: others may use the same location"})
	}

	if len(rows) == 1 {
		return 0, nil
	}

	return doomed, t.cli.PrintTable(rows)
}

func countText(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func (t *termination) delete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, terminateTimeout)
	defer cancel()
	var failed []error
	for i := range t.plan {
		r := &t.plan[i]
		if !r.Owned {
			continue
		}
		err := t.inventory.Delete(ctx, r)
		switch what := r.Kind + " " + r.Name; {
		case err == nil:
			t.cli.PrintErrf("deleted %s\n", what)
		case errors.Is(err, queue.ErrNoQueue), errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}):
			t.cli.PrintErrf("%s was already deleted\n", what)
		default:
			failed = append(failed, fmt.Errorf("deleting %s: %w", what, base.Explained(err)))
		}
	}

	if t.deletesData() {
		failed = append(failed, t.deleteData())
	}
	return errors.Join(failed...)
}

func (t *termination) deleteData() error {
	left, err := t.data.Delete()
	switch {
	case err != nil:
		return fmt.Errorf("deleting data directory %s: %w", t.data.Path, err)
	case len(left) > 0:
		t.cli.PrintErrf("emptied data directory %s except for files of other programs: %s\n", base.Plain(t.data.Path),
			base.Plain(strings.Join(left, ", ")))
	default:
		t.cli.PrintErrf("deleted data directory %s\n", base.Plain(t.data.Path))
	}
	return nil
}
