package tasks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/host/terminal"
)

// NewTasks returns the command 'tendril tasks'.
func NewTasks(c *base.CLI) *cobra.Command {
	list := base.ListCommand("List the tasks: schedule, next and last run, and leader")
	family := base.Family("tasks", "List, run, pause and resume periodic tasks; show their history",
		`Lists the periodic tasks of the running environment and the instance that enqueues them. Each
subcommand works on any instance, not only on the leader.`,
		listsTasks(c, list), newTasksRun(c), newTasksPause(c), newTasksResume(c), newTasksHistory(c))
	family.Example = "  tendril tasks\n  tendril tasks run backup-job\n  tendril tasks history backup-job -n 5"
	return listsTasks(c, family)
}

func listsTasks(c *base.CLI, cmd *cobra.Command) *cobra.Command {
	base.Asks(c, cmd, func(ctx context.Context, client *api.Client, _ []string) (api.TasksStatus, error) {
		return client.Tasks(ctx)
	}, base.ViewOf(func(st api.TasksStatus) error {
		if err := c.PrintTable(List.Table(st.Tasks)); err != nil {
			return err
		}
		c.Printf("\n%s\n", leaderText(&st))
		return nil
	}, func(st api.TasksStatus) []string { return base.Named(List.Name)(st.Tasks) }))
	base.AddWatch(c, cmd)
	return cmd
}

func newTasksRun(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Enqueue one run of a task now, even if it is paused",
		Long:  `Enqueues one run of a task now and prints the message ID. The schedule does not change.`,
		Args:  cobra.ExactArgs(1),
	}
	return changesTask(c, cmd, "enqueue one run of task %s now", func(ctx context.Context, client *api.Client,
		name string, f base.Format) error {
		run, err := client.RunTask(ctx, name)
		if err != nil {
			return err
		}
		return f.Print(c, run, []string{run.MessageID}, func() error {
			_, err := c.Println(run.MessageID)
			return err
		})
	})
}

func newTasksPause(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause NAME",
		Short: "Pause a task: its runs are skipped until it is resumed",
		Args:  cobra.ExactArgs(1),
	}
	var reason string
	cmd.Flags().StringVar(&reason, "reason", "", "Reason, shown in the status.")
	return changesTask(c, cmd, "pause task %s", func(ctx context.Context, client *api.Client, name string,
		f base.Format) error {
		if err := client.PauseTask(ctx, name, reason); err != nil {
			return err
		}
		return f.PrintDone(c, api.TaskPaused{Task: name, Paused: true}, name,
			"task "+base.Plain(name)+" is paused; 'tendril tasks resume "+terminal.ShellWord(name)+"' resumes it")
	})
}

func newTasksResume(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume NAME",
		Short: "Resume a paused task; missed runs are not caught up",
		Args:  cobra.ExactArgs(1),
	}
	return changesTask(c, cmd, "resume task %s", func(ctx context.Context, client *api.Client, name string,
		f base.Format) error {
		if err := client.ResumeTask(ctx, name); err != nil {
			return err
		}
		return f.PrintDone(c, api.TaskPaused{Task: name}, name, "task "+base.Plain(name)+" is scheduled")
	})
}

// changesTask formats would with the task's name.
func changesTask(c *base.CLI, cmd *cobra.Command, would string,
	do func(context.Context, *api.Client, string, base.Format) error) *cobra.Command {
	f := base.AddOutput(cmd)
	return base.ChangesRunning(c, cmd, func(ctx context.Context, client *api.Client, args []string) (*base.Plan, error) {
		name := args[0]
		return base.PlanOf(func() ([]string, error) {
			st, err := client.Tasks(ctx)
			if err == nil && !slices.ContainsFunc(st.Tasks, func(t api.Task) bool { return t.Name == name }) {
				err = base.NotFoundf("task %q not found", name).Hint("'tendril tasks' lists the tasks")
			}
			return []string{fmt.Sprintf(would, name)}, err
		}, func() error { return do(ctx, client, name, *f) }), nil
	})
}

func newTasksHistory(c *base.CLI) *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use:   "history [NAME]",
		Short: "Show the runs of a task, or of all tasks, newest first",
		Long: `Shows the runs recorded on this instance: those that it enqueued or skipped, and those enqueued
by other instances and processed by its app.`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", limit, "Maximum runs to show (1-1000).")
	cmd.PreRunE = func(*cobra.Command, []string) error { return base.CheckConsoleLimit(limit) }
	base.Asks(c, cmd, func(ctx context.Context, client *api.Client, args []string) ([]api.TaskRun, error) {
		return client.TaskHistory(ctx, base.Argument(args), limit)
	}, runList.View(c))
	return cmd
}

// List describes how tasks are listed. Schedules include the time zone.
var List = base.List[api.Task]{
	Heading: []string{"TASK", "SCHEDULE", "NEXT", "LAST RUN", "OUTCOME", "NOTE"},
	Name:    func(t *api.Task) string { return t.Name },
	Row: func(t *api.Task) []string {
		row := []string{base.Plain(t.Name), t.Words, "-", "-", "-", noteText(t)}
		if len(t.Next) > 0 {
			row[2] = base.Clock(t.Next[0], t.Zone)
		}
		if t.Last != nil {
			row[3], row[4] = base.Clock(t.Last.ScheduledAt, t.Zone), runText(t.Last)
		}
		return row
	},
}

func noteText(t *api.Task) string {
	var notes base.Words
	notes.AddIf(t.Paused, strings.TrimSuffix("PAUSED: "+base.Plain(t.PauseText()), ": "))
	notes.AddIf(t.Failing > 0, "ENQUEUEING FAILS, "+base.Plural(t.Failing, "time")+" in a row")
	notes.AddIf(t.FailedRuns > 1, "FAILING, "+base.Plural(t.FailedRuns, "run")+" in a row")
	notes.Add(base.Plain(t.Problem))
	return notes.Join("; ")
}

func runText(r *api.TaskRun) string {
	switch {
	case r.Skipped != "":
		return "skipped: " + base.Plain(r.Skipped)
	case r.Outcome == "" && r.Attempts == 0:
		return "not delivered here yet"
	}

	text := r.Outcome
	if r.Status != 0 {
		text += " " + strconv.Itoa(r.Status)
	}
	if r.Reason != "" {
		text += ": " + base.Plain(r.Reason)
	}
	text += " in " + (time.Duration(r.DurationMS) * time.Millisecond).String()
	if r.Attempts > 1 {
		text += fmt.Sprintf(" (attempt %d)", r.Attempts)
	}
	return text
}

// runList has times in UTC, like run IDs.
var runList = base.List[api.TaskRun]{
	Heading: []string{"TASK", "SCHEDULED", "LATE", "OUTCOME", "MESSAGE", "NOTE"},
	Name:    func(r *api.TaskRun) string { return r.MessageID },
	Row: func(r *api.TaskRun) []string {
		late := "-"
		if !r.EnqueuedAt.IsZero() {
			late = (time.Duration(r.LatenessMS) * time.Millisecond).String()
		}
		return []string{base.Plain(r.Task), base.Clock(r.ScheduledAt, "UTC"), late, runText(r), cmp.Or(r.MessageID, "-"),
			originText(r)}
	},
}

func originText(r *api.TaskRun) string {
	var notes base.Words
	notes.AddIf(r.Manual, "run by hand")
	notes.AddIf(r.Resent, "possibly sent twice")
	notes.AddIf(r.RunID == "" && r.Skipped == "", "enqueued elsewhere")
	return notes.Join(", ")
}

func leaderText(st *api.TasksStatus) string {
	l := &st.Leader
	switch {
	case st.Off != "":
		return "NOT SCHEDULED: " + base.Plain(st.Off)
	case l.Local:
		return "led by this instance, declared the only one (--leader local)"
	}

	text := "no leader known"
	switch {
	case l.Leading:
		text = fmt.Sprintf("led by this instance (term %d)", l.Term)
	case l.Holder != "":
		text = fmt.Sprintf("led by %s (term %d), seen %s ago", base.Plain(l.Holder), l.Term, base.Seconds(l.AgeSeconds))
	}
	if l.Error != "" {
		text += "; registry error: " + base.Plain(l.Error)
	}
	return text
}

// Summary summarizes the periodic tasks in one line.
func Summary(st *api.TasksStatus) string {
	text := fmt.Sprintf("%d, %s", len(st.Tasks), leaderText(st))
	if st.Off != "" {
		return text
	}

	if first := nextTask(st.Tasks); first != nil {
		text += fmt.Sprintf("; next %s, %s", base.Plain(first.Name), base.Clock(first.Next[0], first.Zone))
	}

	paused, failing := 0, 0
	for i := range st.Tasks {
		if st.Tasks[i].Paused {
			paused++
		}
		if st.Tasks[i].State() == api.TaskFailing {
			failing++
		}
	}
	if failing > 0 {
		text += fmt.Sprintf("; %d FAILING", failing)
	}
	if paused > 0 {
		text += fmt.Sprintf("; %d PAUSED", paused)
	}
	return text
}

func nextTask(all []api.Task) (first *api.Task) {
	for i := range all {
		t := &all[i]
		if !t.Paused && len(t.Next) > 0 && (first == nil || t.Next[0].Before(first.Next[0])) {
			first = t
		}
	}
	return first
}
