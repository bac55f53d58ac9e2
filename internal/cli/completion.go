package cli

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
)

const (
	completionTimeout = 500 * time.Millisecond
	completedMessages = 50
)

// completionSource returns completions, each with an optional description after a tab.
type completionSource func(ctx context.Context, cmd *cobra.Command, client *api.Client) ([]string, error)

// argumentSources has the sources by placeholder, or by family and placeholder.
var argumentSources = map[string]completionSource{"QUEUE": completeQueues, "PROCESS": completeProcesses,
	"VERSION": completeVersions, "ID": completeMessages, "dead ID": completeDeadLetters, "tasks NAME": completeTasks}

func completeSubcommands(c *base.CLI, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		completeSubcommands(c, sub)
		completeFlags(c, sub)
		if sub.ValidArgsFunction == nil && !sub.HasSubCommands() {
			sub.ValidArgsFunction = argumentCompletions(c, sub)
		}
	}
}

// completeFlags keeps the command's own completions.
func completeFlags(c *base.CLI, cmd *cobra.Command) {
	base.CompleteFlags(cmd)
	if f := cmd.Flags().Lookup("queue"); f != nil && !base.IsSetting(f) {
		_ = cmd.RegisterFlagCompletionFunc("queue", completes(c, completeQueues, true))
	}
	_ = cmd.RegisterFlagCompletionFunc("environment", environmentNames(c))
	_ = cmd.RegisterFlagCompletionFunc("to", completes(c, completeQueues, true))
}

// argument finds QUEUE in "peek [QUEUE]".
var argument = regexp.MustCompile(`^[^ ]+ .*?\b([A-Z]{2,})\b`)

func argumentCompletions(c *base.CLI, cmd *cobra.Command) cobra.CompletionFunc {
	placeholder := ""
	if m := argument.FindStringSubmatch(cmd.Use); m != nil {
		placeholder = m[1]
	}
	for _, key := range []string{cmd.Parent().Name() + " " + placeholder, placeholder} {
		if source := argumentSources[key]; source != nil {
			return completes(c, source, strings.Contains(cmd.Use, "..."))
		}
	}
	switch placeholder {
	case "DIR", "FILE", "FOLDER", "MESSAGE":
		return nil // the shell completes files
	}
	return cobra.NoFileCompletions
}

// completes returns no completions after an error, because the shell cannot display errors.
func completes(c *base.CLI, source completionSource, several bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		const nothingElse = cobra.ShellCompDirectiveNoFileComp
		if len(args) > 0 && !several {
			return nil, nothingElse
		}

		client, err := c.Dial(cmd)
		if err != nil {
			return nil, nothingElse
		}

		client.Bodies = false
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		offered, err := source(ctx, cmd, client)
		if err != nil {
			return nil, nothingElse
		}

		offered = slices.DeleteFunc(offered, func(line string) bool {
			word, _, _ := strings.Cut(line, "\t")
			return slices.Contains(args, word)
		})
		return offered, nothingElse | cobra.ShellCompDirectiveKeepOrder
	}
}

func completeQueues(ctx context.Context, _ *cobra.Command, client *api.Client) ([]string, error) {
	st, err := client.Status(ctx)
	return base.Named(func(q *api.Queue) string {
		return base.Described(q.Name, base.Plural(int(q.Ledger.Visible), "waiting message"))
	})(st.Queues), err
}

func completeTasks(ctx context.Context, _ *cobra.Command, client *api.Client) ([]string, error) {
	st, err := client.Tasks(ctx)
	return base.Named(func(t *api.Task) string { return base.Described(t.Name, t.Words) })(st.Tasks), err
}

func completeProcesses(ctx context.Context, cmd *cobra.Command, client *api.Client) (names []string, err error) {
	st, err := client.Status(ctx)
	if cmd.Name() == "logs" {
		names = append(names, base.Described("tendril", "tendril's own log"))
	}
	replicas := base.Named(func(p *api.Process) string { return base.Described(p.Name, p.State) })
	return append(names, replicas(st.App)...), err
}

func completeVersions(ctx context.Context, _ *cobra.Command, client *api.Client) ([]string, error) {
	versions, err := client.Versions(ctx)
	return base.Named(func(v *api.AppVersion) string {
		return base.Described(strconv.Itoa(v.Number), v.State+", "+v.Source)
	})(versions), err
}

func completeMessages(ctx context.Context, cmd *cobra.Command, client *api.Client) ([]string, error) {
	queues, err := client.Queues(ctx)
	if err != nil {
		return nil, err
	}
	return idsIn(ctx, cmd, client, queues)
}

func completeDeadLetters(ctx context.Context, cmd *cobra.Command, client *api.Client) ([]string, error) {
	var dead []api.Queue
	for _, q := range client.Instance.Queues {
		if q.DeadLetterQueue != "" && q.Embedded {
			dead = append(dead, api.Queue{Name: q.DeadLetterQueue})
		}
	}
	return idsIn(ctx, cmd, client, dead)
}

func idsIn(ctx context.Context, cmd *cobra.Command, client *api.Client, queues []api.Queue) (ids []string, err error) {
	if f := cmd.Flags().Lookup("queue"); f != nil && f.Changed {
		queues = []api.Queue{{Name: f.Value.String()}}
	}
	for _, q := range queues {
		page, _, err := client.Messages(ctx, q.Name, api.Filter{Limit: completedMessages})
		if err != nil {
			return nil, err
		}
		for i := range page {
			ids = append(ids, base.Described(page[i].ID, q.Name+", "+page[i].StateText()+", "+sinceWhen(&page[i])))
		}
	}
	return ids[:min(len(ids), completedMessages)], nil
}

func sinceWhen(m *api.Message) string {
	if m.Scheduled() {
		return "visible in " + base.Age(time.Until(m.VisibleAt))
	}
	return "sent " + base.Since(m.SentAt) + " ago"
}

func environmentNames(c *base.CLI) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
		for _, found := range api.Running(api.DataDirectories(c.StateFolder())) {
			names = append(names, base.Described(found.Name, found.Folder))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
