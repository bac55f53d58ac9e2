package messages

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

type receiveFlags struct {
	limit            int
	wait, visibility time.Duration
	delete           bool
	format           *base.Format
}

// NewReceive returns the command 'tendril receive'.
func NewReceive(c *base.CLI) *cobra.Command {
	f := &receiveFlags{}
	cmd := &cobra.Command{
		Use:   "receive [QUEUE]",
		Short: "Receive messages like a consumer",
		Long: `Receives messages like an SQS consumer and prints each with its receipt handle. A receive counts
towards maxReceiveCount and hides the message from other consumers for the visibility timeout.
'tendril peek' shows messages of the embedded queue without either effect.

With --delete, messages are deleted after they are printed. With -o json each message is one
line, which 'tendril send --ndjson' can send again.`,
		Example: `  tendril receive orders
  tendril receive orders -n 100 --delete -o json >orders.ndjson
  tendril receive https://sqs.eu-west-1.amazonaws.com/123456789012/orders --wait 20s`,
	}

	w := target.AddQueueArgument(c, cmd, target.OnlyQueue)
	cmd.Flags().IntVarP(&f.limit, "limit", "n", 1, "Maximum messages to receive.")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "Maximum wait for a message (0s-20s).")
	cmd.Flags().DurationVar(&f.visibility, "visibility-timeout", -1,
		"Period in which the messages are hidden from other consumers, 0s to 12h (default: the queue's).")
	cmd.Flags().Lookup("visibility-timeout").DefValue = ""
	cmd.Flags().BoolVar(&f.delete, "delete", false, "Delete the messages after printing them.")
	f.format = base.AddOutput(cmd)
	return base.Changes(c, cmd, func(ctx context.Context, _ []string) (*base.Plan, error) {
		if err := cmp.Or(base.CheckLimit(f.limit), f.check(cmd.Flags().Changed("visibility-timeout"))); err != nil {
			return nil, err
		}
		p, err := w.Find(ctx)
		action := "receive"
		if f.delete {
			action = "receive and delete"
		}
		return base.PlanOf(func() ([]string, error) {
			text, err := p.CountText(ctx)
			return []string{fmt.Sprintf("%s at most %s from queue %s, which holds %s", action, base.Plural(f.limit, "message"),
				p.Name, text)}, err
		}, func() error { return receiveMessages(ctx, c, p, f) }), err
	})
}

func (f *receiveFlags) check(visibility bool) error {
	switch {
	case f.wait < 0 || f.wait > 20*time.Second || f.wait%time.Second != 0:
		return base.Usagef("--wait %s is out of range", f.wait).Hint("use whole seconds from 0s to 20s")
	case visibility && (f.visibility < 0 || f.visibility > queue.MaxVisibility || f.visibility%time.Second != 0):
		return base.Usagef("--visibility-timeout %s is out of range", f.visibility).
			Hint("use whole seconds from 0s to 12h")
	}
	return nil
}

func receiveMessages(ctx context.Context, c *base.CLI, p *target.Queue, f *receiveFlags) error {
	received := 0
	for received < f.limit {
		req := api.ReceiveRequest{Max: min(f.limit-received, queue.MaxBatch), WaitSeconds: int(f.wait.Seconds())}
		if f.visibility >= 0 {
			seconds := int(f.visibility.Seconds())
			req.VisibilitySeconds = &seconds
		}
		portion, err := p.Receive(ctx, req)
		if err != nil {
			return err
		}
		if len(portion) == 0 {
			break
		}
		received += len(portion)
		if err := printReceived(c, portion, *f.format); err != nil {
			return err
		}
		if f.delete {
			if err := p.Acknowledge(ctx, portion); err != nil {
				return err
			}
		}
		if f.visibility == 0 {
			break // the next receive would return the same messages
		}
	}

	switch {
	case received == 0:
		c.PrintErrf("no messages received from %s\n", p.Name)
	case f.delete:
		c.PrintErrf("%s received and deleted\n", base.Plural(received, "message"))
	case f.visibility == 0:
		c.PrintErrf("%s received: still visible to other consumers\n", base.Plural(received, "message"))
	default:
		c.PrintErrf("%s received: hidden from other consumers until the visibility timeout expires\n",
			base.Plural(received, "message"))
	}

	return nil
}

func printReceived(c *base.CLI, messages []api.ReceivedMessage, f base.Format) error {
	for i := range messages {
		if err := printReceivedMessage(c, &messages[i], f); err != nil {
			return err
		}
	}
	return nil
}

func printReceivedMessage(c *base.CLI, m *api.ReceivedMessage, f base.Format) error {
	if f == base.AsTable {
		return printMessage(c, &m.Message, []string{"receipt handle", m.ReceiptHandle})
	}
	return f.PrintEach(c, m, m.ID, "")
}
