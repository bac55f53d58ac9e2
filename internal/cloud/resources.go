package cloud

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/config"
	"tendril/internal/cron/periodic"
	"tendril/queue"
)

// listQueues returns the configured queues and, if the environment has created them, the queues with its name.
func (i *Inventory) listQueues(ctx context.Context) ([]Resource, error) {
	all, err := i.listConfigured(ctx)
	if err != nil {
		return all, err
	}

	managed := i.settings.Queues[0].Managed
	if !managed && len(all) == 0 {
		return nil, nil
	}

	name := i.settings.Name
	for _, q := range []struct{ kind, name string }{{kindQueue, name}, {kindDeadLetterQueue, queue.DeadLetterName(name)}} {
		reference := q.name
		if !managed { // queues named without a URL are in the first queue's account and region
			reference = sibling(all[0].URL, q.name)
		}
		r, err := i.findQueue(ctx, q.kind, reference)
		if err != nil {
			return all, err
		}
		if r != nil && (r.Owned || managed) {
			all = appendNew(all, r)
		}
	}
	return all, nil
}

func (i *Inventory) listConfigured(ctx context.Context) (all []Resource, err error) {
	for n := range i.settings.Queues {
		q := &i.settings.Queues[n]
		if q.Backend != config.BackendSQS {
			continue
		}

		r, err := i.findQueue(ctx, kindQueue, cmp.Or(q.URL, q.Name))
		if err != nil {
			return all, err
		}
		if r == nil {
			continue
		}
		all = appendNew(all, r)

		name, _ := queue.ParseRedrivePolicy(r.Attributes["RedrivePolicy"])
		if name == "" {
			continue
		}
		// A dead-letter queue is in its source queue's account and region.
		deadLetters, err := i.findQueue(ctx, kindDeadLetterQueue, sibling(r.URL, name))
		if err != nil {
			return all, err
		}
		all = appendNew(all, deadLetters)
	}
	return all, nil
}

func appendNew(all []Resource, r *Resource) []Resource {
	if r == nil || slices.ContainsFunc(all, func(other Resource) bool { return other.URL == r.URL }) {
		return all
	}
	return append(all, *r)
}

func sibling(queueURL, name string) string {
	return queueURL[:strings.LastIndexByte(queueURL, '/')+1] + name
}

// findQueue returns nil if the queue does not exist.
func (i *Inventory) findQueue(ctx context.Context, kind, reference string) (*Resource, error) {
	r, err := i.describeQueue(ctx, kind, reference)
	if errors.Is(err, queue.ErrNoQueue) {
		return nil, nil
	}
	return r, err
}

func (i *Inventory) describeQueue(ctx context.Context, kind, reference string) (*Resource, error) {
	q, err := i.sqs.Queue(ctx, reference)
	if err != nil {
		return nil, err
	}

	r := &Resource{Kind: kind, Name: q.Name(), URL: q.URL()}
	attributes, err := q.Attributes(ctx)
	if errors.Is(err, queue.ErrDenied) {
		r.Note = "cannot read attributes: " + err.Error()
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	messages := countMessages(attributes)
	r.ARN = attributes["QueueArn"]
	r.Attributes = attributes
	r.Messages = &messages

	tags, err := q.Tags(ctx)
	if errors.Is(err, queue.ErrDenied) {
		r.Note = tagsDenied + err.Error()
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	r.setOwner(i.settings.Name, tags)
	return r, nil
}

func countMessages(attributes map[string]string) (total int64) {
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible",
		"ApproximateNumberOfMessagesDelayed"} {
		n, _ := strconv.ParseInt(attributes[name], 10, 64)
		total += n
	}
	return total
}

// describeTable returns nil if the table does not exist.
func (i *Inventory) describeTable(ctx context.Context) (*Resource, error) {
	info, err := i.table.Describe(ctx)
	if errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
		return nil, nil
	}
	r := &Resource{Kind: kindTable, Name: i.settings.RegistryTable, ARN: info.ARN}
	if info.ARN != "" {
		r.Items = &info.Items
	}

	switch {
	case errors.Is(err, queue.ErrDenied):
		r.Note = tagsDenied + err.Error()
	case err != nil:
		return nil, err
	default:
		r.setOwner(i.settings.Name, info.Tags)
	}
	return r, nil
}

// noteSharedTable returns why the table must be kept, or "".
func (i *Inventory) noteSharedTable(ctx context.Context) (note string, err error) {
	leases, err := i.table.Leases(ctx)
	if errors.Is(err, queue.ErrDenied) {
		return "cannot read which environments use it: " + err.Error(), nil
	}
	if err != nil {
		return "", err
	}

	others := slices.DeleteFunc(leases, func(lease string) bool {
		return periodic.OwnsLease(i.settings.Queues[0].Name, lease)
	})
	if len(others) == 0 {
		return "", nil
	}
	return "other environments use it: " + strings.Join(others, ", "), nil
}
