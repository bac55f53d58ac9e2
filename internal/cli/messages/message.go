package messages

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

// NewMessage returns the command 'tendril message'.
func NewMessage(c *base.CLI) *cobra.Command {
	show := &cobra.Command{Use: "show ID", Short: "Show a message in full", Args: cobra.ExactArgs(1),
		Example: "  tendril message show 3f0c8a12-5d5e-4a38-9a55-0f1c5d1f3a11 -o json | jq -r .body"}
	family := base.Family("message", "Show, retry, delay or delete one message",
		`These commands act on one message of an embedded queue. 'tendril message ID' is short for 'tendril
message show ID'. Both also accept the start of the ID, at least 4 characters. Without --queue, all
queues are searched. On Amazon SQS, where a message can be read only by receiving it, 'show' says what
the worker did with it.`,
		showsMessage(c, show), newMessageRetry(c), newMessageDelay(c), newMessageDelete(c))
	family.Example = "  tendril message 3f0c8a12-5d5e-4a38-9a55-0f1c5d1f3a11"

	help := family.RunE
	showsMessage(c, family)
	run := family.RunE
	family.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && idStart.MatchString(args[0]) {
			return nil
		}
		return cobra.NoArgs(cmd, args)
	}
	family.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return help(cmd, args)
		}
		return run(cmd, args)
	}
	return family
}

// idStart matches message IDs and their starts. Few words match, so most misspelled subcommands are reported.
var idStart = regexp.MustCompile("^[0-9a-fA-F-]{4,}$")

// onMessage adds a change of one message to cmd. would is a format string for the message's ID and queue; check may be
// nil.
func onMessage(c *base.CLI, cmd *cobra.Command, would string, check func(*api.Message) error,
	do func(context.Context, *api.Client, *api.Message) error) *cobra.Command {
	w := target.AddQueue(c, cmd, target.AllQueues)
	return base.Changes(c, cmd, func(ctx context.Context, args []string) (*base.Plan, error) {
		client, m, err := findMessage(ctx, w, args[0])
		if err != nil {
			return nil, err
		}
		if !strings.EqualFold(m.ID, args[0]) {
			return nil, base.Usagef("%q is only the start of an ID", args[0]).Hint("use the whole ID: " + m.ID)
		}
		if check != nil {
			if err := check(&m); err != nil {
				return nil, err
			}
		}
		return base.PlanOf(base.Step(would, m.ID, m.Queue), func() error { return do(ctx, client, &m) }), nil
	})
}

func findMessage(ctx context.Context, w *target.Flags, id string) (client *api.Client, m api.Message, err error) {
	if w.Queue == "" {
		if client, err = w.Dial(); err == nil {
			m, err = client.FindMessage(ctx, id)
		}
		return client, m, err
	}

	p, err := w.Find(ctx)
	if err != nil {
		return nil, m, err
	}
	if p.Remote != nil {
		return nil, m, base.Usagef("%s is on Amazon SQS or another server, where messages cannot be looked up by ID", p.Name).
			Hint("'tendril peek' shows some of them; each counts as a receive")
	}
	m, err = findInQueue(ctx, p, id)
	return p.Client, m, err
}

func findInQueue(ctx context.Context, p *target.Queue, id string) (api.Message, error) {
	m, err := p.Client.Message(ctx, p.Name, id)
	if !api.HasStatus(err, http.StatusNotFound) {
		return m, err
	}

	last, lookup := p.Client.LastOutcome(ctx, id)
	switch {
	case lookup == nil && last.MessageID != id: // the ID was a prefix
		return p.Client.Message(ctx, p.Name, last.MessageID)
	case api.HasStatus(lookup, http.StatusConflict): // the prefix is ambiguous
		return m, lookup
	}
	return m, err
}

func showsMessage(c *base.CLI, cmd *cobra.Command) *cobra.Command {
	w := target.AddQueue(c, cmd, target.AllQueues)
	base.Prints(c, cmd, func(ctx context.Context, args []string) (*api.Message, error) {
		_, m, err := findMessage(ctx, w, args[0])
		return &m, err
	}, base.ViewOf(
		func(m *api.Message) error { return printMessage(c, m) },
		func(m *api.Message) []string { return []string{m.ID} },
	))
	return cmd
}

func newMessageRetry(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "retry ID", Short: "Make a message visible at once", Args: cobra.ExactArgs(1),
		Long: `Makes a delayed message, or one that waits for its next attempt, visible at once. A message in
flight is delivered a second time. A dead letter stays where it is: see 'tendril dead redrive'.`}
	return onMessage(c, cmd, "make message %s visible in %s", func(m *api.Message) error {
		if m.DeadAt.IsZero() {
			return nil
		}
		return base.Conflictf("message %s is a dead letter: nothing receives from %s", m.ID, m.Queue).
			Hint("move it back with 'tendril dead redrive " + m.ID + " --queue " + m.Queue + "'")
	}, func(ctx context.Context, client *api.Client, m *api.Message) error {
		placed, err := client.Retry(ctx, m.Queue, m.ID)
		if err != nil {
			return err
		}
		printRetried(c, m, placed)
		return nil
	})
}

func newMessageDelay(c *base.CLI) *cobra.Command {
	var delay time.Duration
	cmd := &cobra.Command{Use: "delay ID", Short: "Hide a message for a period from now", Args: cobra.ExactArgs(1),
		Example: "  tendril message delay 3f0c8a12-5d5e-4a38-9a55-0f1c5d1f3a11 --for 10m"}
	cmd.Flags().DurationVar(&delay, "for", 0, "Period from now in which the message is hidden (1s-12h, required).")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if delay < time.Second || delay > queue.MaxVisibility {
			return base.Usagef("--for %s is out of range", delay).Hint("use 1s to " + queue.MaxVisibility.String())
		}
		return nil
	}
	return onMessage(c, cmd, "hide message %s in %s", nil, func(ctx context.Context, client *api.Client,
		m *api.Message) error {
		placed, err := client.Delay(ctx, m.Queue, m.ID, delay)
		if err != nil {
			return err
		}
		printPlaced(c, m, placed)
		return nil
	})
}

func printRetried(c *base.CLI, m *api.Message, p api.Placed) {
	if p.State == api.MessageInFlight {
		c.PrintErrf("message %s in %s is being delivered; see 'tendril message show %[1]s'\n", p.ID, m.Queue)
		return
	}
	printPlaced(c, m, p)
}

func printPlaced(c *base.CLI, m *api.Message, p api.Placed) {
	switch {
	case p.State == api.MessageTaken:
		c.PrintErrf("message %s in %s was delivered at once\n", p.ID, m.Queue)
	case p.VisibleAt.IsZero():
		c.PrintErrf("message %s is visible in %s\n", p.ID, m.Queue)
	default:
		c.PrintErrf("message %s in %s is hidden until %s\n", p.ID, m.Queue, base.Moment(p.VisibleAt))
	}
}

func newMessageDelete(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "delete ID", Short: "Delete a message permanently", Args: cobra.ExactArgs(1)}
	return onMessage(c, cmd, "delete message %s from %s", nil, func(ctx context.Context, client *api.Client,
		m *api.Message) error {
		n, err := client.Delete(ctx, m.Queue, []string{m.ID}, 0)
		if err != nil {
			return err
		}
		if n == 0 {
			return base.NotFoundf("message %s not found: already deleted", m.ID)
		}
		c.PrintErrf("message %s was deleted from %s\n", m.ID, m.Queue)
		return nil
	})
}
