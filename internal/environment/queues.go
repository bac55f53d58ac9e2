package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tendril/broker"
	"tendril/internal/access"
	"tendril/internal/aws"
	"tendril/internal/cloud"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/host/datadir"
	"tendril/internal/observe/doctor"
	"tendril/internal/worker"
	"tendril/queue"
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
	embedded       bool // else on Amazon SQS
}

// queues opens embedded queues, and those on Amazon SQS.
type queues struct {
	*core
	broker   *broker.Broker // nil on Amazon SQS
	sqs      *aws.SQS       // nil with the embedded queue
	endpoint string         // of the embedded queue; "" on Amazon SQS
	// appEndpoint is where the app calls the embedded queue, and appKeys what it signs with: zero where any keys do.
	appEndpoint string
	appKeys     access.KeyPair
}

func (q *queues) openBroker(events *broker.Events) error {
	b, err := broker.Open(q.s.DataDir, &broker.Options{
		Region: q.s.Region, AccountID: q.s.AccountID, Logger: q.Logger.Logger, Events: events,
		Memory: q.Memory,
	})
	switch {
	case errors.Is(err, broker.ErrInUse):
		return q.alreadyRuns(err)
	case errors.Is(err, datadir.ErrUnsafe):
		return fmt.Errorf("%w: %w", ErrSettings, err)
	case err != nil:
		return fmt.Errorf("opening the embedded queues: %w", err)
	}
	q.broker = b
	q.steps.push("the embedded queues", func(context.Context) error { return b.Close() })
	return nil
}

// alreadyRuns explains that another process has the data directory.
func (q *queues) alreadyRuns(err error) error {
	i, unknown := console.ReadInstance(q.s.DataDir)
	if unknown != nil || q.Config.IsSet("data-dir") {
		return conflict{fmt.Errorf("%w; a second environment needs its own --data-dir", err)}
	}
	return conflict{fmt.Errorf("environment %q runs already: process %d, started in %s; stop it, or choose another name "+
		"for this one with --name", i.Environment, i.PID, cmp.Or(i.Folder, q.s.DataDir))}
}

func (q *queues) openSQS(ctx context.Context) error {
	if !q.s.AnyOnSQS() {
		return nil
	}
	opts := q.aws()
	opts.Endpoint, opts.Events = q.s.EndpointURL, q.Logger.AWS()
	client, err := aws.OpenSQS(ctx, opts)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQueue, err)
	}
	q.sqs = client
	q.steps.push("the connections to SQS", func(context.Context) error { client.Close(); return nil })
	return nil
}

// open finds the queue of these settings. It creates one that is embedded, and one on Amazon SQS that nobody
// named.
func (q *queues) open(ctx context.Context, set *config.QueueSettings) (queueRef, error) {
	switch {
	case set.Backend == config.BackendEmbedded:
		return q.createOwn(ctx, set)
	case set.Managed:
		if err := q.createOnSQS(ctx, set); err != nil {
			return queueRef{}, err
		}
	}
	return q.findOnSQS(ctx, set)
}

// createTimeout bounds the calls by which a queue and its dead-letter queue are created on Amazon SQS.
const createTimeout = time.Minute

// createOnSQS creates the environment's own queue on Amazon SQS and its dead-letter queue, or brings existing
// ones up to date.
func (q *queues) createOnSQS(ctx context.Context, set *config.QueueSettings) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	err := cloud.EnsureQueue(ctx, q.sqs, q.s, set, q.Logger.With("component", "aws"))
	switch {
	case errors.Is(err, cloud.ErrNotOwned):
		return conflict{err}
	case err != nil:
		return fmt.Errorf("%w: %w", ErrQueue, err)
	}
	return nil
}

// createOwn makes a worker queue and its dead-letter queue, or brings the
// redrive policy of existing ones up to date.
func (q *queues) createOwn(ctx context.Context, set *config.QueueSettings) (found queueRef, err error) {
	created, own := ownAttributes(q.s, set)
	dead := deadName(set.Name)
	for _, name := range []string{dead, set.Name} {
		if err := q.broker.EnsureQueue(ctx, name, created); err != nil {
			return found, fmt.Errorf("creating the queue %s: %w", name, err)
		}
	}
	if err := q.broker.SetAttributes(ctx, set.Name, own); err != nil {
		return found, fmt.Errorf("setting up the queue %s: %w", set.Name, err)
	}
	return queueRef{Queue: q.broker.Queue(set.Name), name: set.Name, arn: q.broker.ARN(set.Name), dead: dead,
		fifo: set.FIFO(), embedded: true, url: q.urlOf(set.Name)}, nil
}

// urlOf is the URL of an embedded queue, for producers.
func (q *queues) urlOf(name string) string { return q.endpoint + "/" + q.s.AccountID + "/" + name }

// deadName is the name of the dead-letter queue of an embedded queue.
func deadName(name string) string {
	base, fifo := strings.CutSuffix(name, fifoSuffix)
	if fifo {
		return base + "-dead" + fifoSuffix
	}
	return base + "-dead"
}

// ownAttributes are those that an embedded queue and its dead-letter queue are created with, and those that the
// queue has beside them.
func ownAttributes(s *config.Settings, set *config.QueueSettings) (created, own map[string]string) {
	created = map[string]string{"MessageRetentionPeriod": seconds(queueRetention)}
	if set.FIFO() {
		created["FifoQueue"] = "true"
	}
	return created, map[string]string{
		"VisibilityTimeout": seconds(set.VisibilityTimeout),
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, embeddedARN(s, deadName(set.Name)),
			s.MaxRetries),
	}
}

// embeddedARN is the ARN of an embedded queue, as the broker has it.
func embeddedARN(s *config.Settings, name string) string {
	return fmt.Sprintf("arn:aws:sqs:%s:%s:%s", s.Region, s.AccountID, name)
}

func seconds(d time.Duration) string { return fmt.Sprint(int64(d / time.Second)) }

// findOnSQS finds a queue on Amazon SQS, checks that it can be read and warns
// where its own attributes and the settings do not fit together.
func (q *queues) findOnSQS(ctx context.Context, set *config.QueueSettings) (ref queueRef, err error) {
	reference := cmp.Or(set.URL, set.Name)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	found, err := q.sqs.Queue(ctx, reference)
	if err != nil {
		return ref, fmt.Errorf("%w: %w", ErrQueue, err)
	}
	attrs, err := found.Attributes(ctx)
	if err != nil && !errors.Is(err, queue.ErrDenied) {
		return ref, fmt.Errorf("%w: %s: %w", ErrQueue, reference, err)
	}
	q.warnOfConflicts(set, found.Name(), found.URL(), attrs, err)
	dead, _ := queue.ParseRedrivePolicy(attrs["RedrivePolicy"])
	return queueRef{Queue: found, name: found.Name(), url: found.URL(), arn: queueARN(attrs, found.URL(), set),
		fifo: found.FIFO(), dead: dead}, nil
}

// warnOfConflicts prints what the queue's owner should know. Reading the
// attributes needs a permission of its own; without it the worker still works.
func (q *queues) warnOfConflicts(set *config.QueueSettings, name, url string, attrs map[string]string, denied error) {
	log := q.Logger.With("component", "aws", "queue", name)
	if denied != nil {
		log.Warn("queue attributes not readable, settings are not compared with them", "err", denied,
			"hint", "allow sqs:GetQueueAttributes")
		return
	}
	examined := doctor.Queue{Name: name, URL: url, OnSQS: true, Several: len(q.s.Queues) > 1, Attributes: attrs,
		Times: queueTimes(q.s, set)}
	for _, f := range examined.Examine() {
		switch {
		case f.Level != doctor.OK:
			log.Warn("queue attributes affect the settings", "reason", f.ID, "detail", f.What+": "+f.Why, "hint", f.Remedy)
		case f.ID != doctor.QueueFits:
			log.Info("queue attributes affect the settings", "reason", f.ID, "detail", f.What)
		}
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
	account := "000000000000"
	if parts := strings.Split(url, "/"); len(parts) >= 2 && len(parts[len(parts)-2]) == len(account) {
		account = parts[len(parts)-2]
	}
	return fmt.Sprintf("arn:aws:sqs:%s:%s:%s", set.Region, account, set.Name)
}
