package main

import (
	"context"
	"encoding/json"
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

// fifoSuffix ends the names of FIFO queues.
const fifoSuffix = ".fifo"

// newQueue is a queue to be created.
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
		Long: `Creates a queue and prints its name, or its URL on Amazon SQS. A queue that exists
with the same attributes is no error. A dead-letter queue that does not exist is
created too, with the longest retention there is.`,
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
	flags.IntVar(&n.maxReceives, "max-receives", 10,
		"Maximum receives before a message is dead-lettered (1-1000).")
	cmd.RunE = verb(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		if n.deadLetter == "" && cmd.Flags().Changed("max-receives") {
			return fail(exitUsage, errors.New("--max-receives means nothing without --dead-letter"),
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

// forDead are the attributes of a dead-letter queue that is created on the way.
func (n *newQueue) forDead() map[string]string {
	attributes := map[string]string{"MessageRetentionPeriod": "1209600"}
	if strings.HasSuffix(n.deadLetter, fifoSuffix) {
		attributes["FifoQueue"] = "true"
	}
	return attributes
}

func (c queueCommands) createQueue(ctx context.Context, cmd *cobra.Command, w *queueFlags, n *newQueue) error {
	if err := w.check(); err != nil {
		return err
	}
	if w.backend == backendSQS {
		return c.createOnSQS(ctx, n)
	}
	client, err := c.dial(cmd)
	if err != nil {
		return err
	}
	if n.deadLetter != "" {
		arn, err := embeddedARN(ctx, client, n)
		if err != nil {
			return err
		}
		n.attributes["RedrivePolicy"] = redrivePolicy(arn, n.maxReceives)
	}
	if _, err := client.CreateQueue(ctx, n.name, n.attributes); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, n.name)
	return err
}

// embeddedARN finds the dead-letter queue, or creates it.
func embeddedARN(ctx context.Context, client *console.Client, n *newQueue) (string, error) {
	q, err := client.Queue(ctx, n.deadLetter)
	if errors.Is(err, queue.ErrNoQueue) {
		return client.CreateQueue(ctx, n.deadLetter, n.forDead())
	}
	return q.ARN, err
}

func (c queueCommands) createOnSQS(ctx context.Context, n *newQueue) error {
	sqs, err := aws.OpenSQS(ctx, nil)
	if err != nil {
		return err
	}
	if n.deadLetter != "" {
		arn, err := remoteARN(ctx, sqs, n)
		if err != nil {
			return err
		}
		n.attributes["RedrivePolicy"] = redrivePolicy(arn, n.maxReceives)
	}
	q, err := sqs.Create(ctx, n.name, n.attributes, nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, q.URL())
	return err
}

func remoteARN(ctx context.Context, sqs *aws.SQS, n *newQueue) (string, error) {
	q, err := sqs.Queue(ctx, n.deadLetter)
	if errors.Is(err, queue.ErrNoQueue) {
		q, err = sqs.Create(ctx, n.deadLetter, n.forDead(), nil)
	}
	if err != nil {
		return "", err
	}
	attributes, err := q.Attributes(ctx)
	return attributes["QueueArn"], err
}

// deadLetterARN is the target of a RedrivePolicy attribute; "" without one.
func deadLetterARN(policy string) string {
	var p struct {
		Target string `json:"deadLetterTargetArn"`
	}
	if json.Unmarshal([]byte(policy), &p) != nil {
		return ""
	}
	return p.Target
}

// redrivePolicy is the attribute that sends messages to a dead-letter queue
// after so many receives.
func redrivePolicy(arn string, maxReceives int) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`, arn, maxReceives)
}

// counted is the number of messages in a queue by its SQS attributes.
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
