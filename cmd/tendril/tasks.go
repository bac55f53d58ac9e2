package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"tendril/console"
)

func (c *cli) newTasks() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "List, run, pause and resume periodic tasks, and show their history",
		Long: `Lists the periodic tasks of the running environment and says which instance
enqueues them. Each subcommand works on any instance, also one that does not lead.`,
		Example: "  tendril tasks\n  tendril tasks run backup-job\n  tendril tasks history backup-job -n 5",
		Args:    cobra.NoArgs,
	}
	c.listsTasks(cmd)
	cmd.AddCommand(c.newTasksList(), c.newTasksRun(), c.newTasksPause(), c.newTasksResume(), c.newTasksHistory())
	return cmd
}

func (c *cli) newTasksList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the tasks: schedule, next and last run, and who enqueues them",
		Args:    cobra.NoArgs,
	}
	c.listsTasks(cmd)
	return cmd
}

// listsTasks makes a command list the tasks.
func (c *cli) listsTasks(cmd *cobra.Command) {
	addDataDir(cmd)
	f := addOutput(cmd)
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		client, err := c.dial(cmd)
		if err != nil {
			return err
		}
		st, err := client.Tasks(ctx)
		if err != nil {
			return err
		}
		if *f == asJSON {
			return c.printJSON(st)
		}
		if err := c.printTable(taskTable(st.Tasks)); err != nil {
			return err
		}
		fmt.Fprintf(c.out, "\n%s\n", leaderText(&st))
		return nil
	})
}

func (c *cli) newTasksRun() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Enqueue one run of a task now, also of a paused one",
		Long: `Enqueues one run of a task at once and prints the message's id. When the task is
due next does not change.`,
		Args: cobra.ExactArgs(1),
	}
	addDataDir(cmd)
	f := addOutput(cmd)
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		client, err := c.dial(cmd)
		if err != nil {
			return err
		}
		run, err := client.RunTask(ctx, args[0])
		switch {
		case err != nil:
			return err
		case *f == asJSON:
			return c.printJSON(run)
		}
		fmt.Fprintln(c.out, run.MessageID)
		return nil
	})
	return cmd
}

// taskPaused is what pausing and resuming print for programs.
type taskPaused struct {
	Task   string `json:"task"`
	Paused bool   `json:"paused"`
}

func (c *cli) newTasksPause() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "pause NAME",
		Short: "Leave out the runs of a task until it is resumed",
		Args:  cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "Why, for those who look at the status.")
	c.holdsTask(cmd, true, func(ctx context.Context, client *console.Client, name string) error {
		return client.PauseTask(ctx, name, reason)
	})
	return cmd
}

func (c *cli) newTasksResume() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume NAME",
		Short: "Enqueue a paused task again when it is due; what was left out is not made up for",
		Args:  cobra.ExactArgs(1),
	}
	c.holdsTask(cmd, false, func(ctx context.Context, client *console.Client, name string) error {
		return client.ResumeTask(ctx, name)
	})
	return cmd
}

// holdsTask makes a command pause or resume the task that its argument names.
func (c *cli) holdsTask(cmd *cobra.Command, paused bool, act func(context.Context, *console.Client, string) error) {
	addDataDir(cmd)
	f := addOutput(cmd)
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		client, err := c.dial(cmd)
		if err != nil {
			return err
		}
		name := args[0]
		if err := act(ctx, client, name); err != nil {
			return err
		}
		switch {
		case *f == asJSON:
			return c.printJSON(taskPaused{name, paused})
		case paused:
			fmt.Fprintf(c.err, "task %s is paused; 'tendril tasks resume' goes on\n", plain(name, false))
		default:
			fmt.Fprintf(c.err, "task %s is enqueued when it is due\n", plain(name, false))
		}
		return nil
	})
}

// defaultHistory is how many runs are shown unless told.
const defaultHistory = 20

func (c *cli) newTasksHistory() *cobra.Command {
	limit := defaultHistory
	cmd := &cobra.Command{
		Use:   "history [NAME]",
		Short: "Show the runs of a task, or of all tasks, the newest first",
		Long: `Shows the runs that this instance remembers: those that it enqueued or left out,
and those that others enqueued and its app worked on.`,
		Args: cobra.MaximumNArgs(1),
	}
	addDataDir(cmd)
	cmd.Flags().IntVarP(&limit, "limit", "n", limit, "Show at most so many runs, 1 to 1000.")
	f := addOutput(cmd)
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		if limit < 1 || limit > 1000 {
			return fail(exitUsage, fmt.Errorf("--limit %d is out of range", limit), "use 1 to 1000")
		}
		client, err := c.dial(cmd)
		if err != nil {
			return err
		}
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		runs, err := client.TaskHistory(ctx, name, limit)
		switch {
		case err != nil:
			return err
		case *f == asJSON:
			return c.printJSON(runs)
		}
		return c.printTable(runTable(runs))
	})
	return cmd
}
