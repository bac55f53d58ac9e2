package messages

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

type receiveFlags struct {
	limit      int
	wait       time.Duration
	visibility time.Duration // queueVisibility for the queue's
	delete     bool
	format     *base.Format
}

const queueVisibility time.Duration = math.MinInt64

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
	cmd.Flags().DurationVar(&f.visibility, "visibility-timeout", queueVisibility,
		"Period in which the messages are hidden from other consumers, 0s to 12h (default: the queue's).")
	cmd.Flags().Lookup("visibility-timeout").DefValue = ""
	cmd.Flags().BoolVar(&f.delete, "delete", false, "Delete the messages after printing them.")
	f.format = base.AddOutput(cmd)
	return base.Changes(c, cmd, func(ctx context.Context, _ []string) (*base.Plan, error) {
		if err := cmp.Or(base.CheckLimit(f.limit), f.check()); err != nil {
			return nil, err
		}
		p, err := w.Find(ctx)
		if err != nil {
			return nil, err
		}

		action := "receive"
		if f.delete {
			action = "receive and delete"
		}
		return base.PlanOf(func() ([]string, error) {
			text, err := p.CountText(ctx)
			return []string{fmt.Sprintf("%s at most %s from queue %s, which holds %s", action, base.Plural(f.limit, "message"),
				p.Name, text)}, err
		}, func() error { return receiveMessages(ctx, c, p, f) }), nil
	})
}

func (f *receiveFlags) check() error {
	v := f.visibility
	switch {
	case f.wait < 0 || f.wait > 20*time.Second || f.wait%time.Second != 0:
		return base.Usagef("--wait %s is out of range", f.wait).Hint("use whole seconds from 0s to 20s")
	case v != queueVisibility && (v < 0 || v > queue.MaxVisibility || v%time.Second != 0):
		return base.Usagef("--visibility-timeout %s is out of range", f.visibility).
			Hint("use whole seconds from 0s to 12h")
	}
	return nil
}

func receiveMessages(ctx context.Context, c *base.CLI, p *target.Queue, f *receiveFlags) error {
	req := api.ReceiveRequest{WaitSeconds: int(f.wait.Seconds())}
	if f.visibility != queueVisibility {
		req.VisibilitySeconds = new(int(f.visibility.Seconds()))
	}

	received := 0
	for received < f.limit {
		req.Max = min(f.limit-received, queue.MaxBatch)
		batch, err := p.Receive(ctx, req)
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			break
		}
		received += len(batch)
		if err := printReceived(c, batch, *f.format); err != nil {
			return err
		}
		if f.delete {
			if err := p.Acknowledge(ctx, batch); err != nil {
				return err
			}
		}
		if f.visibility == 0 {
			break // the next receive would return the same messages
		}
	}

	c.PrintErrln(f.resultText(received, p.Name))
	return nil
}

func (f *receiveFlags) resultText(received int, queueName string) string {
	text := base.Plural(received, "message") + " received"
	switch {
	case received == 0:
		return "no messages received from " + queueName
	case f.delete:
		return text + " and deleted"
	case f.visibility == 0:
		return text + ": still visible to other consumers"
	}
	return text + ": hidden from other consumers until the visibility timeout expires"
}

func printReceived(c *base.CLI, messages []api.ReceivedMessage, f base.Format) error {
	for i := range messages {
		m := &messages[i]
		var err error
		if f == base.AsTable {
			err = printMessage(c, &m.Message, []string{"receipt handle", m.ReceiptHandle})
		} else {
			err = f.PrintEach(c, m, m.ID, "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}
