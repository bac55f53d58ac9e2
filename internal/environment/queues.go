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

	"tendril/api"
	"tendril/broker"
	"tendril/internal/access"
	"tendril/internal/aws"
	"tendril/internal/cloud"
	"tendril/internal/config"
	"tendril/internal/cron/periodic"
	"tendril/internal/observe/doctor"
	"tendril/queue"
)

// queueRetention is the maximum of Amazon SQS, so that no message expires in a long outage.
const queueRetention = 14 * 24 * time.Hour

const (
	createTimeout = time.Minute
	findTimeout   = 30 * time.Second
)

type queues struct {
	opts     *Options
	life     *lifecycle
	settings *settings

	all      []*workQueue
	broker   *broker.Broker
	sqs      *aws.SQS
	endpoint string // of the embedded queues; "" without them
	// appEndpoint is for the app. appKeys is zero if any credentials are accepted.
	appEndpoint string
	appKeys     access.KeyPair
}

func (q *queues) openBroker(events *broker.Events) error {
	s := q.settings.now()
	b, err := broker.Open(s.DataDir, &broker.Options{
		Region: s.Region, AccountID: s.AccountID, Logger: q.opts.Logger.Logger, Events: events,
		Memory: q.opts.Memory,
	})
	switch {
	case errors.Is(err, broker.ErrInUse):
		return q.inUseError(err)
	case errors.Is(err, broker.ErrUnsafe):
		return invalidSettings(err)
	case err != nil:
		return fmt.Errorf("opening the embedded queues: %w", err)
	}
	q.broker = b
	q.life.closeOnStop("the embedded queues", b.Close)
	return nil
}

func (q *queues) inUseError(err error) error {
	s := q.settings.now()
	i, readErr := api.ReadInstance(s.DataDir)
	if readErr != nil || q.opts.Config.IsSet("data-dir") {
		return conflict{fmt.Errorf("%w; a second environment needs its own --data-dir", err)}
	}
	return conflict{fmt.Errorf("environment %q is already running: process %d, started in %s; stop it, or choose "+
		"another name for this one with --name", i.Environment, i.PID, cmp.Or(i.Folder, s.DataDir))}
}

func (q *queues) openSQS(ctx context.Context) error {
	s := q.settings.now()
	if !s.AnyOnSQS() {
		return nil
	}
	opts := q.opts.aws()
	opts.Endpoint, opts.Events = s.EndpointURL, q.opts.Logger.AWS()
	client, err := aws.OpenSQS(ctx, opts)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQueue, err)
	}
	q.sqs = client
	q.life.onStop("the connections to SQS", func(context.Context) error { client.Close(); return nil })
	return nil
}

// openAll also opens queues named only in the task file if the first queue is embedded. file may be nil.
func (q *queues) openAll(ctx context.Context, file *periodic.File) error {
	if err := q.openSQS(ctx); err != nil {
		return err
	}
	for i := range q.settings.now().Queues {
		if err := q.add(ctx, i, false); err != nil {
			return err
		}
	}

	if file == nil || !q.home().embedded {
		return nil
	}
	for _, t := range file.Tasks {
		if t.Queue == "" || q.named(t.Queue) != nil {
			continue
		}
		if err := q.add(ctx, q.settings.addTaskQueue(t.Queue), true); err != nil {
			return err
		}
	}
	return nil
}

func (q *queues) add(ctx context.Context, index int, forTask bool) error {
	opened, err := q.open(ctx, q.settings.queue(index))
	if err != nil {
		return err
	}
	opened.forTask = forTask
	opened.inForce = q.settings
	opened.index = index
	q.all = append(q.all, opened)
	return nil
}

// home is the default queue of periodic tasks and the app, or nil without workers.
func (q *queues) home() *workQueue {
	if len(q.all) == 0 {
		return nil
	}
	return q.all[0]
}

func (q *queues) named(name string) *workQueue {
	if i := slices.IndexFunc(q.all, func(w *workQueue) bool { return w.name == name }); i >= 0 {
		return q.all[i]
	}
	return nil
}

func (q *queues) names() (list []string) {
	for _, w := range q.all {
		list = append(list, w.name)
	}
	return list
}

func (q *queues) open(ctx context.Context, set *config.QueueSettings) (*workQueue, error) {
	switch {
	case set.Backend == config.BackendEmbedded:
		return q.createOwn(ctx, set)
	case set.Managed:
		if err := q.createOnSQS(ctx, set); err != nil {
			return nil, err
		}
	}
	return q.findOnSQS(ctx, set)
}

func (q *queues) createOnSQS(ctx context.Context, set *config.QueueSettings) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	err := cloud.EnsureQueue(ctx, q.sqs, q.settings.now(), set, q.opts.log("aws"))
	switch {
	case errors.Is(err, cloud.ErrNotOwned):
		return conflict{err}
	case err != nil:
		return fmt.Errorf("%w: %w", ErrQueue, err)
	}
	return nil
}

func (q *queues) createOwn(ctx context.Context, set *config.QueueSettings) (*workQueue, error) {
	created, own := ownAttributes(q.settings.now(), set)
	dead := queue.DeadLetterName(set.Name)
	for _, name := range []string{dead, set.Name} {
		if err := q.broker.EnsureQueue(ctx, name, created); err != nil {
			return nil, fmt.Errorf("creating queue %s: %w", name, err)
		}
	}
	if err := q.broker.SetAttributes(ctx, set.Name, own); err != nil {
		return nil, fmt.Errorf("setting up queue %s: %w", set.Name, err)
	}
	return &workQueue{source: q.broker.Queue(set.Name), name: set.Name, arn: q.broker.ARN(set.Name), dead: dead,
		fifo: set.FIFO(), embedded: true, url: q.urlOf(set.Name)}, nil
}

func isQueueAttribute(name string) bool {
	option, _, _ := strings.Cut(name, " of ")
	return slices.Contains([]string{"visibility-timeout", "max-retries", "retention-period"}, option)
}

// updateAttributes leaves queues on Amazon SQS alone unless tendril created them.
func (q *queues) updateAttributes() {
	ctx, cancel := context.WithTimeout(context.Background(), createTimeout)
	defer cancel()
	for _, w := range q.all {
		var err error
		switch set := w.settings(); {
		case w.embedded:
			_, own := ownAttributes(q.settings.now(), set)
			err = q.broker.SetAttributes(ctx, w.name, own)
		case set.Managed:
			err = q.createOnSQS(ctx, set)
		}
		if err != nil {
			q.opts.log("config").Error("queue attributes not updated", "queue", w.name, "err", err)
		}
	}
}

func (q *queues) urlOf(name string) string {
	return q.endpoint + "/" + q.settings.now().AccountID + "/" + name
}

// created is also for the dead-letter queue.
func ownAttributes(s *config.Settings, set *config.QueueSettings) (created, own map[string]string) {
	created = map[string]string{"MessageRetentionPeriod": seconds(queueRetention)}
	if set.FIFO() {
		created["FifoQueue"] = "true"
	}
	return created, map[string]string{
		"VisibilityTimeout": seconds(set.VisibilityTimeout),
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`,
			embeddedARN(s, queue.DeadLetterName(set.Name)), s.MaxRetries),
	}
}

func embeddedARN(s *config.Settings, name string) string {
	return fmt.Sprintf("arn:aws:sqs:%s:%s:%s", s.Region, s.AccountID, name)
}

func seconds(d time.Duration) string { return fmt.Sprint(int64(d / time.Second)) }

func (q *queues) findOnSQS(ctx context.Context, set *config.QueueSettings) (*workQueue, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	reference := cmp.Or(set.URL, set.Name)
	found, err := q.sqs.Queue(ctx, reference)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQueue, err)
	}
	attrs, err := found.Attributes(ctx)
	if err != nil && !errors.Is(err, queue.ErrDenied) {
		return nil, fmt.Errorf("%w: %s: %w", ErrQueue, reference, err)
	}
	dead, _ := queue.ParseRedrivePolicy(attrs["RedrivePolicy"])
	return &workQueue{source: found, name: found.Name(), url: found.URL(), arn: queueARN(attrs, found.URL(), set),
		fifo: found.FIFO(), dead: dead, attributes: attrs, denied: err}, nil
}

// warnOfConflicts returns no error, because the workers also run without permission to read the attributes.
func (q *queues) warnOfConflicts(context.Context) error {
	for _, w := range q.all {
		if !w.embedded {
			w.warnOfConflicts(q.opts.log("aws").With("queue", w.name))
		}
	}
	return nil
}

func (w *workQueue) warnOfConflicts(log *slog.Logger) {
	if w.denied != nil {
		log.Warn("queue attributes not readable, settings not compared with them", "err", w.denied,
			"hint", "allow sqs:GetQueueAttributes")
		return
	}

	s := w.inForce.now()
	examined := doctor.Queue{Name: w.name, URL: w.url, OnSQS: true, SeveralQueues: len(s.Queues) > 1, Attributes: w.attributes,
		Times: queueTimes(s, w.settings())}
	for _, f := range examined.Examine() {
		switch {
		case f.Level != doctor.OK:
			log.Warn("queue attributes affect the settings", "reason", f.ID, "detail", f.What+": "+f.Why,
				"hint", f.Remedy)
		case f.ID != doctor.QueueFits:
			log.Info("queue attributes affect the settings", "reason", f.ID, "detail", f.What)
		}
	}
}

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
