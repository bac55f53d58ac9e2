package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tendril/aws"
	"tendril/console"
	"tendril/queue"
)

const fifoSuffix = ".fifo"

type newQueue struct {
	name        string
	attributes  map[string]string
	deadLetter  string
	maxReceives int
}

func (c queueCommands) newQueuesCreate() *cobra.Command {
	var fifo bool
	var attributes []string
	n := &newQueue{}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a queue",
		Long: `Creates a queue and prints its name, or its URL on Amazon SQS. A queue that exists with the
same attributes is not an error. A missing dead-letter queue is created too, with the
longest retention period, 14 days.`,
		Example: `  tendril queues create orders --dead-letter orders-dead --max-receives 5
  tendril queues create mails --fifo --attribute ContentBasedDeduplication=true
  tendril queues create orders --backend sqs --attribute VisibilityTimeout=300`,
		Args: cobra.ExactArgs(1),
	}
	w := addWhere(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&fifo, "fifo", false, "Create a FIFO queue; .fifo is added to the name.")
	flags.StringArrayVarP(&attributes, "attribute", "a", nil,
		"SQS attribute of the queue, such as VisibilityTimeout=300; may be given again.")
	flags.StringVar(&n.deadLetter, "dead-letter", "", "Dead-letter queue, created when it is missing.")
	flags.IntVar(&n.maxReceives, "max-receives", 10, "Maximum receives before a message is dead-lettered (1-1000).")
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		if n.deadLetter == "" && cmd.Flags().Changed("max-receives") {
			return fail(exitUsage, errors.New("--max-receives has no effect without --dead-letter"),
				"name the dead-letter queue too")
		}
		if err := n.complete(args[0], fifo, attributes); err != nil {
			return err
		}
		return c.createQueue(ctx, cmd, w, n)
	})
	return cmd
}

// complete works out the names and attributes.
func (n *newQueue) complete(name string, fifo bool, attributes []string) error {
	n.attributes = map[string]string{}
	for _, text := range attributes {
		key, value, found := strings.Cut(text, "=")
		if !found || key == "" {
			return fail(exitUsage, fmt.Errorf("--attribute %s has no = between name and value", text),
				"write it as VisibilityTimeout=300")
		}
		n.attributes[key] = value
	}
	n.name = withSuffix(name, fifo)
	if strings.HasSuffix(n.name, fifoSuffix) {
		n.attributes["FifoQueue"] = "true"
	}
	if n.deadLetter != "" {
		if n.maxReceives < 1 || n.maxReceives > 1000 {
			return fail(exitUsage, fmt.Errorf("--max-receives %d is out of range", n.maxReceives), "use 1 to 1000")
		}
		n.deadLetter = withSuffix(n.deadLetter, strings.HasSuffix(n.name, fifoSuffix))
	}
	return nil
}

func withSuffix(name string, fifo bool) string {
	if fifo && !strings.HasSuffix(name, fifoSuffix) {
		return name + fifoSuffix
	}
	return name
}

func (n *newQueue) forDead() map[string]string {
	attributes := map[string]string{"MessageRetentionPeriod": "1209600"}
	if strings.HasSuffix(n.deadLetter, fifoSuffix) {
		attributes["FifoQueue"] = "true"
	}
	return attributes
}

// createQueue creates a queue, and its dead-letter queue first where that is missing.
func (c queueCommands) createQueue(ctx context.Context, cmd *cobra.Command, w *queueFlags, n *newQueue) error {
	m, err := c.openMaker(ctx, cmd, w)
	if err != nil {
		return err
	}
	if n.deadLetter != "" {
		arn, err := m.arn(ctx, n.deadLetter)
		if errors.Is(err, queue.ErrNoQueue) {
			var made string
			if made, err = m.create(ctx, n.deadLetter, n.forDead()); err == nil {
				arn, err = m.arn(ctx, made)
			}
		}
		if err != nil {
			return err
		}
		n.attributes["RedrivePolicy"] = redrivePolicy(arn, n.maxReceives)
	}
	made, err := m.create(ctx, n.name, n.attributes)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, made)
	return err
}

// queueMaker makes queues in the running environment, or on Amazon SQS.
type queueMaker struct {
	client *console.Client
	sqs    *aws.SQS
}

func (c queueCommands) openMaker(ctx context.Context, cmd *cobra.Command, w *queueFlags) (m queueMaker, err error) {
	switch err = w.check(); {
	case err != nil:
	case w.backend == backendSQS:
		m.sqs, err = aws.OpenSQS(ctx, nil)
	default:
		m.client, err = c.dial(cmd)
	}
	return m, err
}

// arn returns the ARN of a queue, by what create returned or by its name.
func (m *queueMaker) arn(ctx context.Context, reference string) (string, error) {
	if m.sqs == nil {
		q, err := m.client.Queue(ctx, reference)
		return q.ARN, err
	}
	q, err := m.sqs.Queue(ctx, reference)
	if err != nil {
		return "", err
	}
	attributes, err := q.Attributes(ctx)
	return attributes["QueueArn"], err
}

// create returns the new queue's name, or on Amazon SQS its URL.
func (m *queueMaker) create(ctx context.Context, name string, attributes map[string]string) (string, error) {
	if m.sqs == nil {
		_, err := m.client.CreateQueue(ctx, name, attributes)
		return name, err
	}
	q, err := m.sqs.Create(ctx, name, attributes, nil)
	if err != nil {
		return "", err
	}
	return q.URL(), nil
}

func redrivePolicy(arn string, maxReceives int) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`, arn, maxReceives)
}

func counted(attributes map[string]string) int {
	return number(attributes, visibleCount) + number(attributes, delayedCount) + number(attributes, inFlightCount)
}

// The attributes that count messages.
const (
	visibleCount  = "ApproximateNumberOfMessages"
	delayedCount  = "ApproximateNumberOfMessagesDelayed"
	inFlightCount = "ApproximateNumberOfMessagesNotVisible"
)

func number(attributes map[string]string, name string) int {
	n, _ := strconv.Atoi(attributes[name])
	return n
}

// moment is a time for people, with its age; "" for the zero time.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	local := t.Local().Format("2006-01-02 15:04:05")
	if d := time.Until(t); d > 0 {
		return local + " (in " + age(d) + ")"
	}
	return local + " (" + since(t) + " ago)"
}

// queueCommands list, create, show, purge, pause and resume queues.
type queueCommands struct{ *cli }
