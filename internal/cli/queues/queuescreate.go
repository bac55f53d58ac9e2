package queues

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/aws"
	"tendril/internal/cli/base"
	"tendril/internal/cli/target"
	"tendril/queue"
)

type wantedQueue struct {
	name        string
	attributes  map[string]string
	deadLetter  string
	byDefault   bool // an existing queue does not get the default dead-letter queue
	maxReceives int
}

func newQueuesCreate(c *base.CLI) *cobra.Command {
	var fifo, noDeadLetter bool
	var attributes []string
	n := &wantedQueue{}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a queue",
		Long: `Creates a queue and prints its name, or its URL on Amazon SQS. An existing queue with the same
attributes is not an error.

Its dead-letter queue, NAME-dead, is created too if it is missing, with the longest retention
period, 14 days. An existing queue keeps its redrive policy, unless you give --dead-letter or
--max-receives.`,
		Example: `  tendril queues create orders --max-receives 5
  tendril queues create mails --fifo --attribute ContentBasedDeduplication=true
  tendril queues create scratch --no-dead-letter-queue
  tendril queues create orders --backend sqs --attribute VisibilityTimeout=300`,
	}

	w := target.AddQueueArgument(c, cmd, "")
	flags := cmd.Flags()
	flags.BoolVar(&fifo, "fifo", false, "Create a FIFO queue and add .fifo to the name.")
	flags.StringArrayVarP(&attributes, "attribute", "a", nil,
		"SQS attribute of the queue, such as VisibilityTimeout=300; repeatable.")
	flags.StringVar(&n.deadLetter, "dead-letter", "",
		"Dead-letter queue, created if missing (default: NAME-dead).")
	flags.BoolVar(&noDeadLetter, "no-dead-letter-queue", false, "Do not create a dead-letter queue.")
	flags.IntVar(&n.maxReceives, "max-receives", 10, "Maximum receives before a message is dead-lettered (1-1000).")
	return base.Changes(c, cmd, func(ctx context.Context, _ []string) (*base.Plan, error) {
		for _, name := range []string{"dead-letter", "max-receives"} {
			if noDeadLetter && flags.Changed(name) {
				return nil, base.Usagef("--%s has no effect with --no-dead-letter-queue", name).
					Hint("use only one of them")
			}
		}
		n.byDefault = !flags.Changed("dead-letter") && !flags.Changed("max-receives")
		if err := n.complete(w.Queue, fifo, noDeadLetter, attributes); err != nil {
			return nil, err
		}
		m, err := openMaker(ctx, w)
		if err != nil {
			return nil, err
		}
		return base.PlanOf(func() ([]string, error) { return m.wouldCreate(ctx, n) },
			func() error { return createQueue(ctx, c, m, n) }), nil
	})
}

func (n *wantedQueue) complete(name string, fifo, noDeadLetter bool, attributes []string) (err error) {
	if n.attributes, err = parseAttributes(attributes); err != nil {
		return err
	}

	n.name = withSuffix(name, fifo)
	if ref, err := aws.ParseReference(n.name); err != nil || ref.Remote() {
		return base.Usagef("invalid queue name %q", n.name).
			Hint("use 1 to 80 letters, digits, - and _ (with .fifo for a FIFO queue)")
	}
	isFIFO := queue.IsFIFO(n.name)
	if isFIFO {
		n.attributes["FifoQueue"] = "true"
	}

	_, hasPolicy := n.attributes["RedrivePolicy"]
	if n.deadLetter == "" && !noDeadLetter && !hasPolicy {
		n.deadLetter = queue.DeadLetterName(n.name)
	}
	if n.deadLetter == "" {
		return nil
	}

	if n.maxReceives < 1 || n.maxReceives > 1000 {
		return base.Usagef("--max-receives %d is out of range", n.maxReceives).Hint("use 1 to 1000")
	}
	n.deadLetter = withSuffix(n.deadLetter, isFIFO)
	return nil
}

func parseAttributes(texts []string) (map[string]string, error) {
	attributes := map[string]string{}
	for _, text := range texts {
		key, value, found := strings.Cut(text, "=")
		if !found || key == "" {
			return nil, base.Usagef("invalid --attribute %s: no = between name and value", text).
				Hint("use NAME=VALUE, such as VisibilityTimeout=300")
		}
		attributes[key] = value
	}
	return attributes, nil
}

func withSuffix(name string, fifo bool) string {
	if fifo && !queue.IsFIFO(name) {
		return name + queue.FIFOSuffix
	}
	return name
}

func (n *wantedQueue) deadLetterAttributes() map[string]string {
	attributes := map[string]string{"MessageRetentionPeriod": "1209600"} // 14 days, the maximum
	if queue.IsFIFO(n.deadLetter) {
		attributes["FifoQueue"] = "true"
	}
	return attributes
}

// checkPolicy fails if current has another redrive policy. By default, an existing queue keeps its own.
func (n *wantedQueue) checkPolicy(current *api.Queue) error {
	isSame := current.DeadLetterQueue == n.deadLetter && current.MaxReceives == n.maxReceives
	if n.byDefault || n.deadLetter == "" || isSame {
		return nil
	}
	return base.Conflictf("queue %s exists with another redrive policy", n.name).
		Hint("leave out --dead-letter and --max-receives to keep it")
}

func createQueue(ctx context.Context, c *base.CLI, m *queueMaker, n *wantedQueue) (err error) {
	keepsPolicy := false
	if n.deadLetter != "" {
		current, exists, err := m.find(ctx, n.name)
		if err == nil && exists {
			err = n.checkPolicy(&current)
		}
		if err != nil {
			return err
		}
		keepsPolicy = exists && n.byDefault
	}

	var created string
	if keepsPolicy || n.deadLetter == "" {
		created, err = m.create(ctx, n.name, n.attributes)
	} else {
		created, err = m.createWithDeadLetterQueue(ctx, n)
	}
	if err != nil {
		return err
	}

	if keepsPolicy {
		c.PrintErrf("%s keeps its redrive policy\n", n.name)
	}
	_, err = c.Println(created)
	return err
}

// queueMaker creates queues in the running environment, or on Amazon SQS. Exactly one field is set.
type queueMaker struct {
	client *api.Client
	sqs    *aws.SQS
}

func openMaker(ctx context.Context, w *target.Flags) (*queueMaker, error) {
	client, sqs, err := w.OpenServer(ctx)
	if err == nil && client != nil && !client.Instance.Embedded() {
		err = base.Conflictf("environment %q has no embedded queues", client.Instance.Environment).
			Hint("create the queue on Amazon SQS: add --backend sqs")
	}
	return &queueMaker{client, sqs}, err
}

func (m *queueMaker) createWithDeadLetterQueue(ctx context.Context, n *wantedQueue) (string, error) {
	dead, existed, err := m.find(ctx, n.deadLetter)
	if err == nil && !existed {
		var created string
		if created, err = m.create(ctx, n.deadLetter, n.deadLetterAttributes()); err == nil {
			dead, err = m.describe(ctx, created)
		}
	}
	if err != nil {
		return "", fmt.Errorf("dead-letter queue %s: %w", n.deadLetter, err)
	}

	n.attributes["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`, dead.ARN, n.maxReceives)
	created, err := m.create(ctx, n.name, n.attributes)
	if err != nil && !existed {
		err = fmt.Errorf("%w (its dead-letter queue %s was created)", err, n.deadLetter)
	}
	return created, err
}

func (m *queueMaker) wouldCreate(ctx context.Context, n *wantedQueue) (steps []string, err error) {
	current, exists, err := m.find(ctx, n.name)
	if err != nil {
		return nil, err
	}
	if exists {
		for name, value := range n.attributes {
			if now, known := current.Attributes[name]; known && now != value {
				return nil, base.Conflictf("queue %s exists with %s=%s", n.name, name, now)
			}
		}
		if err := n.checkPolicy(&current); err != nil {
			return nil, err
		}
		return []string{"keep queue " + n.name + " unchanged: it exists"}, nil
	}

	if n.deadLetter == "" {
		return []string{"create queue " + n.name}, nil
	}
	_, exists, err = m.find(ctx, n.deadLetter)
	if err != nil {
		return nil, fmt.Errorf("dead-letter queue %s: %w", n.deadLetter, err)
	}
	if !exists {
		steps = append(steps, "create dead-letter queue "+n.deadLetter)
	}
	return append(steps, fmt.Sprintf("create queue %s with dead-letter queue %s after %s", n.name, n.deadLetter,
		base.Plural(n.maxReceives, "receive"))), nil
}

func (m *queueMaker) find(ctx context.Context, reference string) (q api.Queue, exists bool, err error) {
	q, err = m.describe(ctx, reference)
	if errors.Is(err, queue.ErrNoQueue) {
		return q, false, nil
	}
	return q, err == nil, err
}

func (m *queueMaker) describe(ctx context.Context, reference string) (api.Queue, error) {
	if m.sqs == nil {
		return m.client.Queue(ctx, reference)
	}
	q, err := m.sqs.Queue(ctx, reference)
	if err != nil {
		return api.Queue{}, err
	}
	return target.OnSQS(m.sqs, q).Describe(ctx)
}

// create returns the queue's name, or on Amazon SQS its URL.
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
