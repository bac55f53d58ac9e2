package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"tendril/aws"
	"tendril/broker"
	"tendril/config"
	"tendril/datadir"
	"tendril/limit"
	"tendril/logging"
	"tendril/queue"
	"tendril/worker"
)

// queueRetention is the retention of embedded queues that tendril makes for
// itself: the longest there is, so that a long outage loses nothing.
const queueRetention = 14 * 24 * time.Hour

const fifoSuffix = ".fifo"

// queueRef is the worker's queue, wherever it lives.
type queueRef struct {
	worker.Queue
	name, url, arn string
	dead           string // the dead-letter queue's name; "" for none
	fifo           bool
}

// pipelines are the queues that this environment works on, in the order of the
// settings, and the embedded queues.
type pipelines struct {
	config *config.Config
	s      *config.Settings
	log    *logging.Logger
	steps  *steps

	broker   *broker.Broker            // nil on Amazon SQS
	sqs      *aws.SQS                  // nil with the embedded queue
	endpoint string                    // of the embedded queue; "" on Amazon SQS
	lines    []*pipeline               // none where queues are served alone
	pool     *worker.Pool              // what several queues share; nil for one
	limiters map[string]*limit.Limiter // by target
}

func newPipelines(c *config.Config, log *logging.Logger, s *steps) pipelines {
	return pipelines{config: c, s: &c.Settings, log: log, steps: s, limiters: map[string]*limit.Limiter{}}
}

// openQueues creates the environment's own embedded queues, and finds those on Amazon
// SQS. tasks are the queues that periodic tasks name.
func (q *pipelines) openQueues(ctx context.Context, tasks []string) error {
	if q.s.AnyOnSQS() {
		if err := q.openSQS(ctx); err != nil {
			return err
		}
	}
	for i := range q.s.Queues {
		if err := q.openQueue(ctx, &q.s.Queues[i], false); err != nil {
			return err
		}
	}
	return q.openTaskQueues(ctx, tasks)
}

func (q *pipelines) openQueue(ctx context.Context, set *config.QueueSettings, forTask bool) error {
	l := newPipeline(set)
	l.forTask = forTask
	open := q.findOnSQS
	if l.embedded {
		open = q.createOwnQueue
	}
	if err := open(ctx, l); err != nil {
		return err
	}
	q.lines = append(q.lines, l)
	return nil
}

// openTaskQueues creates the embedded queues that periodic tasks name and that have no
// settings of their own: what holds for the first queue holds for them.
func (q *pipelines) openTaskQueues(ctx context.Context, tasks []string) error {
	for _, name := range tasks {
		if name == "" || q.lineOf(name) != nil || !q.home().embedded {
			continue
		}
		set := *q.home().settings()
		set.Name = name
		for _, l := range q.lines {
			set.Weight = max(set.Weight, l.settings().Weight)
		}
		if err := q.openQueue(ctx, &set, true); err != nil {
			return err
		}
	}
	return nil
}

// home is the pipeline of the queue that was named first: periodic tasks go there, and
// the app gets its URL. It is nil in a process that only serves queues.
func (q *pipelines) home() *pipeline {
	if len(q.lines) == 0 {
		return nil
	}
	return q.lines[0]
}

// lineOf returns the pipeline of a queue by its name; nil when there is none.
func (q *pipelines) lineOf(name string) *pipeline {
	for _, l := range q.lines {
		if l.queue.name == name {
			return l
		}
	}
	return nil
}

// inOrder returns the pipelines as they join the pool, which is their strict order:
// the queues that only periodic tasks use come first, since their messages are
// few and due.
func (q *pipelines) inOrder() []*pipeline {
	list := slices.Clone(q.lines)
	slices.SortStableFunc(list, func(a, b *pipeline) int {
		switch {
		case a.forTask == b.forTask:
			return 0
		case a.forTask:
			return -1
		}
		return 1
	})
	return list
}

// openBroker opens the embedded queues.
func (q *pipelines) openBroker(events *broker.Events) error {
	b, err := broker.Open(q.s.DataDir, &broker.Options{
		Region: q.s.Region, AccountID: q.s.AccountID, Logger: q.log.Logger, Events: events,
	})
	if errors.Is(err, broker.ErrInUse) {
		return conflict(fmt.Errorf("%w; a second environment needs its own --data-dir, --listen, --console and --port", err))
	}
	if errors.Is(err, datadir.ErrUnsafe) {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if err != nil {
		return fmt.Errorf("opening the embedded queues: %w", err)
	}
	q.broker = b
	q.steps.push("the embedded queues", func(context.Context) error { return b.Close() })
	return nil
}

// createOwnQueue makes a worker queue and its dead-letter queue, or brings the
// redrive policy of existing ones up to date.
func (q *pipelines) createOwnQueue(ctx context.Context, l *pipeline) error {
	name := l.settings().Name
	dead := strings.TrimSuffix(name, fifoSuffix) + "-dead"
	attrs := map[string]string{"MessageRetentionPeriod": seconds(queueRetention)}
	fifo := strings.HasSuffix(name, fifoSuffix)
	if fifo {
		dead += fifoSuffix
		attrs["FifoQueue"] = "true"
	}
	nameExists := &queue.Error{Code: queue.CodeQueueNameExists}
	for _, n := range []string{dead, name} {
		if err := q.broker.CreateQueue(ctx, n, attrs, nil); err != nil && !errors.Is(err, nameExists) {
			return fmt.Errorf("creating the queue %s: %w", n, err)
		}
	}
	own := map[string]string{
		"VisibilityTimeout": seconds(l.settings().VisibilityTimeout),
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, q.broker.ARN(dead),
			q.s.MaxRetries),
	}
	if err := q.broker.SetAttributes(ctx, name, own); err != nil {
		return fmt.Errorf("setting up the queue %s: %w", name, err)
	}
	l.queue = queueRef{Queue: q.broker.Queue(name), name: name, url: q.endpoint + "/" + q.s.AccountID + "/" + name,
		arn: q.broker.ARN(name), dead: dead, fifo: fifo}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprint(int64(d / time.Second)) }

// openSQS opens the way to Amazon SQS.
func (q *pipelines) openSQS(ctx context.Context) error {
	opts := &aws.Options{Endpoint: q.s.EndpointURL, Connections: q.s.HTTPConnections + 16, Events: q.log.AWS(),
		Log: q.log.SDK}
	if q.config.IsSet("region") {
		opts.Region = q.s.Region
	}
	client, err := aws.OpenSQS(ctx, opts)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQueue, err)
	}
	q.sqs = client
	q.steps.push("the connections to SQS", func(context.Context) error { client.Close(); return nil })
	return nil
}

// findOnSQS finds a queue on Amazon SQS, checks that it can be read and warns
// where its own attributes and the settings do not fit together.
func (q *pipelines) findOnSQS(ctx context.Context, l *pipeline) error {
	reference := cmp.Or(l.settings().URL, l.settings().Name)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	found, err := q.sqs.Queue(ctx, reference)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQueue, err)
	}
	attrs, err := found.Attributes(ctx)
	if err != nil && !errors.Is(err, queue.ErrDenied) {
		return fmt.Errorf("%w: %s: %w", ErrQueue, reference, err)
	}
	q.warnOfConflicts(l, found, attrs, err)
	dead, _ := aws.RedrivePolicy(attrs)
	l.queue = queueRef{Queue: found, name: found.Name(), url: found.URL(), arn: queueARN(attrs, found.URL(), l.settings()),
		fifo: found.FIFO(), dead: dead}
	return nil
}

// warnOfConflicts prints what the queue's owner should know. Reading the
// attributes needs a permission of its own; without it the worker still works.
func (q *pipelines) warnOfConflicts(l *pipeline, found *aws.Queue, attrs map[string]string, denied error) {
	log := q.log.With("component", "aws", "queue", found.Name())
	if denied != nil {
		log.Warn("queue attributes not readable, settings are not compared with them", "err", denied,
			"hint", "allow sqs:GetQueueAttributes")
		return
	}
	settings := aws.Settings{Retention: l.settings().RetentionPeriod, Visibility: l.settings().VisibilityTimeout,
		Inactivity: l.settings().InactivityTimeout}
	for _, c := range aws.Conflicts(settings, attrs) {
		level := slog.LevelWarn
		if c.Fact {
			level = slog.LevelInfo
		}
		log.Log(context.Background(), level, "queue attributes affect the settings", "reason", string(c.Name),
			"detail", c.Text)
	}
}

// queueARN is the queue's ARN: what SQS says, or, where that may not be read,
// what follows from the URL, whose last two segments are account and name.
func queueARN(attrs map[string]string, url string, set *config.QueueSettings) string {
	if arn := attrs["QueueArn"]; arn != "" {
		return arn
	}
	if strings.HasPrefix(set.URL, "arn:") {
		return set.URL
	}
	account, name := "000000000000", set.Name
	if parts := strings.Split(url, "/"); len(parts) >= 2 && len(parts[len(parts)-2]) == len(account) {
		account = parts[len(parts)-2]
	}
	return fmt.Sprintf("arn:aws:sqs:%s:%s:%s", set.Region, account, name)
}
