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

func sourcesOf(family string) map[string]completionSource {
	sources := map[string]completionSource{
		"QUEUE": completeQueues, "PROCESS": completeProcesses, "VERSION": completeVersions, "ID": completeMessages}
	switch family {
	case "tasks":
		sources["NAME"] = completeTasks
	case "dead":
		sources["ID"] = completeDeadLetters
	}
	return sources
}

var argumentWord = regexp.MustCompile(`^[^ ]+ .*?\b([A-Z]{2,})\b`)

func completeArguments(c *base.CLI, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		completeArguments(c, sub)
		if f := sub.Flags().Lookup("queue"); f != nil && !base.IsSetting(f) {
			completeFlag(c, sub, "queue", completeQueues)
		}
		if sub.Flags().Lookup("environment") != nil {
			_ = sub.RegisterFlagCompletionFunc("environment", environmentNames(c))
		}
		if sub.Flags().Lookup("to") != nil {
			completeFlag(c, sub, "to", completeQueues)
		}
		if sub.ValidArgsFunction != nil || sub.HasSubCommands() {
			continue
		}
		word := ""
		if m := argumentWord.FindStringSubmatch(sub.Use); m != nil {
			word = m[1]
		}
		if source := sourcesOf(sub.Parent().Name())[word]; source != nil {
			sub.ValidArgsFunction = completes(c, source, strings.Contains(sub.Use, "..."))
		} else if word != "DIR" && word != "FILE" && word != "FOLDER" {
			sub.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
}

func completeFlag(c *base.CLI, cmd *cobra.Command, flag string, source completionSource) {
	// Registering fails only if the flag is unknown or already has completions.
	_ = cmd.RegisterFlagCompletionFunc(flag, completes(c, source, true))
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

		defer client.Close()
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
		name := q.Name
		page, _, err := client.Messages(ctx, name, api.Filter{Limit: completedMessages})
		if err != nil {
			return ids, err
		}
		for i := range page {
			if len(ids) < completedMessages {
				ids = append(ids, base.Described(page[i].ID, name+", "+page[i].StateText()+", "+sinceWhen(&page[i])))
			}
		}
	}
	return ids, nil
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
