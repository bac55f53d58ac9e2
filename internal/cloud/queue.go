package cloud

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/queue"
)

// ErrNotOwned means that an existing resource was not created for this environment.
var ErrNotOwned = errors.New("not created for this environment")

// deadLetterRetention is the maximum that SQS allows.
const deadLetterRetention = 14 * 24 * time.Hour

// EnsureQueue creates the environment's queue and dead-letter queue with the attributes that Elastic Beanstalk uses, or
// updates existing ones. If either has a different owner or none, the error wraps [ErrNotOwned] and nothing changes.
func EnsureQueue(ctx context.Context, sqs *aws.SQS, s *config.Settings, q *config.QueueSettings,
	log *slog.Logger) error {
	e := &ensurer{sqs: sqs, environment: s.Name, log: log,
		advice: "use the existing queue with --queue " + q.Name + ", or choose another name with --name"}

	main, err := e.findOwned(ctx, q.Name)
	if err != nil {
		return err
	}
	deadLetters, err := e.findOwned(ctx, queue.DeadLetterName(q.Name))
	if err != nil {
		return err
	}

	deadLetters, err = e.createOrUpdate(ctx, deadLetters, queue.DeadLetterName(q.Name),
		map[string]string{"MessageRetentionPeriod": seconds(deadLetterRetention)})
	if err != nil {
		return err
	}
	attributes, err := deadLetters.Attributes(ctx)
	if err != nil {
		return err
	}

	_, err = e.createOrUpdate(ctx, main, q.Name, map[string]string{
		"VisibilityTimeout":      seconds(q.VisibilityTimeout),
		"MessageRetentionPeriod": seconds(q.RetentionPeriod),
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`, attributes["QueueArn"],
			s.MaxRetries),
	})
	return err
}

func seconds(d time.Duration) string { return fmt.Sprint(int64(d / time.Second)) }

type ensurer struct {
	sqs         *aws.SQS
	environment string
	advice      string
	log         *slog.Logger
}

// findOwned returns nil if the queue does not exist, and an error if it has another owner.
func (e *ensurer) findOwned(ctx context.Context, name string) (*aws.Queue, error) {
	q, err := e.sqs.Queue(ctx, name)
	if errors.Is(err, queue.ErrNoQueue) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	tags, err := q.Tags(ctx)
	switch owner := aws.OwnerOf(tags); {
	case errors.Is(err, queue.ErrNoQueue): // deleted since the previous call
		return nil, nil
	case errors.Is(err, queue.ErrDenied):
		return nil, fmt.Errorf("queue %s exists, but reading its tags is denied, so its owner is unknown: allow "+
			"sqs:ListQueueTags; %s: %w", name, e.advice, err)
	case err != nil:
		return nil, err
	case owner == "":
		return nil, fmt.Errorf("queue %s in %s was %w: it has no tendril tag; %s", name, q.Region(), ErrNotOwned,
			e.advice)
	case owner != e.environment:
		return nil, fmt.Errorf("queue %s in %s was %w: it belongs to the environment %q; %s", name, q.Region(), ErrNotOwned,
			owner, e.advice)
	}
	return q, nil
}

func (e *ensurer) createOrUpdate(ctx context.Context, q *aws.Queue, name string, attributes map[string]string) (*aws.Queue,
	error) {
	if q != nil {
		return q, e.update(ctx, q, name, attributes)
	}

	created, err := e.sqs.Create(ctx, name, attributes, aws.Tags(e.environment))
	if err == nil {
		e.log.Info("queue created", "queue", name, "url", created.URL())
		return created, nil
	}
	if !errors.Is(err, &queue.Error{Code: queue.CodeQueueNameExists}) {
		return nil, fmt.Errorf("creating the queue %s: %w", name, err)
	}

	// Another instance with different settings created the queue first.
	found, err := e.findOwned(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, fmt.Errorf("creating the queue %s: it exists, but was not found", name)
	}
	return found, e.update(ctx, found, name, attributes)
}

func (e *ensurer) update(ctx context.Context, q *aws.Queue, name string, attributes map[string]string) error {
	current, err := q.Attributes(ctx)
	if err != nil {
		return err
	}

	changed := differing(current, attributes)
	if len(changed) == 0 {
		return nil
	}
	if err := q.SetAttributes(ctx, changed); err != nil {
		return fmt.Errorf("setting attributes of the queue %s: %w", name, err)
	}

	for attribute, value := range changed {
		e.log.Info("queue attribute changed", "queue", name, "attribute", attribute, "from", current[attribute],
			"to", value)
	}
	return nil
}

// differing parses redrive policies, because servers format them differently.
func differing(current, wanted map[string]string) map[string]string {
	changed := map[string]string{}
	for name, value := range wanted {
		same := current[name] == value
		if name == "RedrivePolicy" {
			target, receives := queue.ParseRedrivePolicy(value)
			currentTarget, currentReceives := queue.ParseRedrivePolicy(current[name])
			same = target == currentTarget && receives == currentReceives
		}
		if !same {
			changed[name] = value
		}
	}
	return changed
}
