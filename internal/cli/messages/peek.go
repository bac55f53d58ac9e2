package messages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/send"
	"tendril/internal/cli/target"
	"tendril/internal/config/yamlfile"
	"tendril/internal/host/terminal"
	"tendril/queue"
)

// NewPeek returns the command 'tendril peek'.
func NewPeek(c *base.CLI) *cobra.Command {
	which := &selector{all: true}
	var state string
	var full bool
	cmd := &cobra.Command{
		Use:   "peek [QUEUE]",
		Short: "Show the messages of a queue",
		Long: `Shows the oldest messages of a queue, or of all queues of the environment. On the embedded
queue this changes nothing.

On Amazon SQS each message shown is received: that counts towards maxReceiveCount and hides the
message from other consumers until the command exits, for at most 5 minutes.`,
		Example: `  tendril peek
  tendril peek orders --match 4711 --full
  tendril peek -o json -n 100 | jq -r .[].body`,
	}

	w := target.AddQueueArgument(c, cmd, target.AllQueues)
	cmd.Flags().IntVarP(&which.limit, "limit", "n", 10, "Maximum messages to show, oldest first.")
	cmd.Flags().StringVar(&which.filter.Match, "match", "", "Show only messages whose body contains this text.")
	cmd.Flags().StringVar(&state, "state", "", "Show only waiting, delayed, in-flight or damaged messages (embedded queue only).")
	cmd.Flags().BoolVar(&full, "full", false, "Show full bodies and attributes.")
	base.Complete(cmd, "state", "waiting", "delayed", "in-flight", "damaged")
	base.Prints(c, cmd, func(ctx context.Context, _ []string) ([]api.Message, error) {
		if err := base.CheckLimit(which.limit); err != nil {
			return nil, err
		}

		queues, err := w.FindAll(ctx)
		if err != nil {
			return nil, err
		}

		sources, err := peekSources(c, queues, which, state)
		if err != nil {
			return nil, err
		}
		messages, err := collectAll(ctx, sources, which.begin)
		return which.oldest(messages), err
	}, base.ViewOf(func(messages []api.Message) error {
		switch {
		case len(messages) == 0 && (which.filter.Match != "" || state != ""):
			c.PrintErrln("no message matches the filter")
		case len(messages) == 0:
			c.PrintErrln("no messages")
		default:
			return printMessages(c, messages, full)
		}
		return nil
	},
		messageIDs))
	return cmd
}

func peekSources(c *base.CLI, queues []*target.Queue, which *selector, state string) ([]messageSource, error) {
	var sources []messageSource
	for _, p := range queues {
		source := sourceOf(p, which)
		switch embedded, ok := source.(*embeddedSource); {
		case ok:
			embedded.filter.State = apiState(state)
		case state != "":
			return nil, base.Usagef("--state works on the embedded queue only").
				Hint("Amazon SQS shows visible messages only")
		default:
			warnOfReceives(c, p.Name)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

func apiState(name string) string {
	switch name {
	case "waiting":
		return api.MessageVisible
	case "in-flight":
		return api.MessageInFlight
	}
	return name
}

// collectAll sorts the messages of several sources by time. selectionOf is called for each source.
func collectAll(ctx context.Context, sources []messageSource, selectionOf func() *selection) ([]api.Message, error) {
	all := []api.Message{}
	for _, source := range sources {
		selection := selectionOf()
		if selection.full() {
			break
		}
		messages, err := collect(ctx, source, selection)
		if err != nil {
			return nil, err
		}
		all = append(all, messages...)
	}

	if len(sources) > 1 {
		slices.SortStableFunc(all, func(a, b api.Message) int {
			return cmp.Or(orderTime(&a).Compare(orderTime(&b)), a.SentAt.Compare(b.SentAt))
		})
	}
	return all, nil
}

func orderTime(m *api.Message) time.Time {
	sent, died := failedTimes(m)
	return cmp.Or(died, sent)
}

func warnOfReceives(c *base.CLI, name string) {
	c.PrintWarnings(yamlfile.Problem{Text: name + " is on Amazon SQS or another server: peeking counts as a receive " +
		"and hides the message until this command exits"})
}

func collect(ctx context.Context, from messageSource, selection *selection) ([]api.Message, error) {
	messages := []api.Message{}
	err := selection.forEachBatch(ctx, from, selection.selector.batchSize(), func(chosen []sourceMessage) error {
		for i := range chosen {
			messages = append(messages, chosen[i].Message)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return messages, nil
}

const previewWidth = 60

var messageIDs = base.Named(func(m *api.Message) string { return m.ID })

func printMessages(c *base.CLI, messages []api.Message, full bool) error {
	if full {
		for i := range messages {
			if err := printMessage(c, &messages[i]); err != nil {
				return err
			}
		}
		return nil
	}

	rows := [][]string{{"ID", "QUEUE", "STATE", "VISIBLE IN", "AGE", "RECEIVES", "BODY"}}
	severalQueues, someHidden := false, false
	for i := range messages {
		m := &messages[i]
		severalQueues = severalQueues || m.Queue != messages[0].Queue
		someHidden = someHidden || !m.VisibleAt.IsZero()
		rows = append(rows, []string{m.ID, m.Queue, cmp.Or(m.StateText(), "-"), visibleIn(m), ageOf(m), fmt.Sprint(m.ReceiveCount),
			base.Preview(m.Body, previewWidth)})
	}

	if !someHidden {
		rows = base.WithoutColumn(rows, "VISIBLE IN")
	}
	if !severalQueues {
		rows = base.WithoutColumn(rows, "QUEUE")
	}

	return c.PrintTable(rows)
}

func visibleIn(m *api.Message) string {
	if m.VisibleAt.IsZero() {
		return "-"
	}
	return base.Age(time.Until(m.VisibleAt))
}

func ageOf(m *api.Message) string {
	if m.Scheduled() {
		return "-"
	}
	return base.Since(m.SentAt)
}

func failureRows(f *queue.Failure) (t base.Table) {
	if f == nil {
		return nil
	}
	t.Add("last failure", f.Reason)
	t.Add("response", f.Answer)
	t.Add("failed at", base.Moment(f.FailedAt))
	t.Add("failed on instance", f.Instance)
	t.Add("attempts", fmt.Sprintf("%d, of %s", f.Attempts, base.Plural(f.Receives, "receive")))
	t.Add("original message", f.MessageID)
	t.Add("originally sent", base.Moment(f.SentAt))
	t.Add("source queue", f.Source)
	return t
}

func printMessage(c *base.CLI, m *api.Message, more ...[]string) error {
	t := base.Table{{"ID", m.ID}, {"queue", m.Queue}}
	t.Add("state", m.StateText())
	if m.Scheduled() {
		t.Add("sent", "counts as sent when it becomes visible")
	} else {
		t.Add("sent", base.Moment(m.SentAt))
	}
	t.Add("receives", fmt.Sprint(m.ReceiveCount))
	t.Add("first received", base.Moment(m.FirstReceivedAt))
	t.Add("visible from", base.Moment(m.VisibleAt))
	t.Add("dead-lettered", base.Moment(m.DeadAt))
	t.Add("dead-lettered from", m.DeadLetterSource)
	t.Add("group", m.GroupID)
	t.Add("deduplication ID", m.DedupID)
	t.Add("sequence number", m.SequenceNumber)
	t.Add("sender", m.SenderID)
	t.Add("trace", m.TraceHeader)
	attributes, failure := queue.CutReason(m.Attributes)
	t = append(t, failureRows(failure)...)
	for _, a := range attributes {
		value := a.Value
		if a.IsBinary() {
			value = fmt.Sprintf("%d bytes", len(a.Value))
		}
		t.Add("attribute "+a.Name, fmt.Sprintf("%s (%s)", value, a.Type))
	}

	t = append(t, more...)
	t.Add("body", base.Size(len(m.Body)))
	if err := c.PrintFacts(t); err != nil {
		return err
	}

	_, err := c.Printf("\n%s\n\n", strings.TrimSuffix(terminal.Plain(m.Body, true), "\n"))
	if err == nil && len(m.Attempts) > 0 {
		err = printAttempts(c, m.Attempts)
	}

	return err
}

func printAttempts(c *base.CLI, attempts []api.Attempt) error {
	c.Printf("%s failed:\n", base.Plural(len(attempts), "attempt"))
	for i := range attempts {
		if _, err := c.Println("  " + attemptText(&attempts[i])); err != nil {
			return err
		}
		if err := send.PrintAnswer(c, attempts[i].Answer); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(c.Out)
	return err
}

func attemptText(a *api.Attempt) string {
	text := fmt.Sprintf("%s  %s after %d ms", base.Moment(a.At), cmp.Or(a.Reason, a.Outcome), a.DurationMS)
	if a.ReceiveCount > 0 {
		text += fmt.Sprintf(" (receive %d)", a.ReceiveCount)
	}
	if a.Instance != "" {
		text += " on " + a.Instance
	}
	if !a.RetryAt.IsZero() {
		text += ", next attempt at " + a.RetryAt.Local().Format("15:04:05")
	}
	return base.Plain(text)
}
