package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/internal/cron/periodic"
	"tendril/queue"
)

type queues struct {
	sqs      *aws.SQS
	settings *config.Settings
}

func (s *queues) close() { s.sqs.Close() }

func (s *queues) list(ctx context.Context) ([]Resource, error) {
	all, err := s.listConfigured(ctx)
	if err != nil {
		return all, err
	}

	own, dead := s.settings.Name, queue.DeadLetterName(s.settings.Name)
	onlyOwned := !s.settings.Queues[0].Managed
	if onlyOwned {
		if len(all) == 0 {
			return nil, nil
		}
		// Queues named without a URL are in the first queue's account and region.
		own, dead = sibling(all[0].URL, own), sibling(all[0].URL, dead)
	}

	for _, q := range []struct{ kind, reference string }{{kindQueue, own}, {kindDeadLetterQueue, dead}} {
		r, err := s.describe(ctx, q.kind, q.reference)
		if err != nil {
			return all, err
		}
		if r != nil && (r.Owned || !onlyOwned) {
			all = appendNew(all, r)
		}
	}
	return all, nil
}

func (s *queues) listConfigured(ctx context.Context) (all []Resource, err error) {
	for i := range s.settings.Queues {
		q := &s.settings.Queues[i]
		if q.Backend != config.BackendSQS {
			continue
		}

		r, err := s.describe(ctx, kindQueue, cmp.Or(q.URL, q.Name))
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
		dead, err := s.describe(ctx, kindDeadLetterQueue, sibling(r.URL, name))
		if err != nil {
			return all, err
		}
		if dead != nil {
			all = appendNew(all, dead)
		}
	}
	return all, nil
}

func appendNew(all []Resource, r *Resource) []Resource {
	if slices.ContainsFunc(all, func(other Resource) bool { return other.URL == r.URL }) {
		return all
	}
	return append(all, *r)
}

func sibling(queueURL, name string) string {
	return queueURL[:strings.LastIndexByte(queueURL, '/')+1] + name
}

func (s *queues) describe(ctx context.Context, kind, reference string) (*Resource, error) {
	r, err := s.read(ctx, kind, reference)
	if errors.Is(err, queue.ErrNoQueue) {
		return nil, nil
	}
	return r, err
}

func (s *queues) read(ctx context.Context, kind, reference string) (*Resource, error) {
	q, err := s.sqs.Queue(ctx, reference)
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
	r.setOwner(s.settings.Name, tags)
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

func (s *queues) markShared(context.Context, []Resource) error { return nil }

func (s *queues) remove(ctx context.Context, r *Resource) (mine bool, err error) {
	if r.Kind != kindQueue && r.Kind != kindDeadLetterQueue {
		return false, nil
	}
	q, err := s.sqs.Queue(ctx, r.URL)
	if err != nil {
		return true, err
	}
	tags, err := q.Tags(ctx)
	if err != nil {
		return true, err
	}
	if aws.OwnerOf(tags) != s.settings.Name {
		return true, fmt.Errorf("%s %s was %w", r.Kind, r.Name, ErrNotOwned)
	}
	return true, q.DeleteQueue(ctx)
}

type registryTable struct {
	table    *aws.Table
	settings *config.Settings
}

func (s *registryTable) close() { s.table.Close() }

func (s *registryTable) list(ctx context.Context) ([]Resource, error) {
	info, err := s.table.Describe(ctx)
	if errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
		return nil, nil
	}
	r := Resource{Kind: kindTable, Name: s.settings.RegistryTable, ARN: info.ARN}
	if info.ARN != "" {
		r.Items = &info.Items
	}

	switch {
	case errors.Is(err, queue.ErrDenied):
		r.Note = tagsDenied + err.Error()
	case err != nil:
		return nil, err
	default:
		r.setOwner(s.settings.Name, info.Tags)
	}
	return []Resource{r}, nil
}

func (s *registryTable) markShared(ctx context.Context, found []Resource) error {
	i := slices.IndexFunc(found, func(r Resource) bool { return r.Kind == kindTable && r.Owned })
	if i < 0 {
		return nil
	}
	leases, err := s.table.Leases(ctx)
	if errors.Is(err, queue.ErrDenied) {
		found[i].Owned, found[i].Note = false, "cannot read which environments use it: "+err.Error()
		return nil
	}
	if err != nil {
		return err
	}

	others := slices.DeleteFunc(leases, func(lease string) bool {
		return periodic.OwnsLease(s.settings.Queues[0].Name, lease)
	})
	if len(others) > 0 {
		found[i].Owned, found[i].Note = false, "other environments use it: "+strings.Join(others, ", ")
	}
	return nil
}

func (s *registryTable) remove(ctx context.Context, r *Resource) (mine bool, err error) {
	if r.Kind != kindTable {
		return false, nil
	}
	info, err := s.table.Describe(ctx)
	if err != nil {
		return true, err
	}
	if aws.OwnerOf(info.Tags) != s.settings.Name {
		return true, fmt.Errorf("%s %s was %w", r.Kind, r.Name, ErrNotOwned)
	}
	return true, s.table.Delete(ctx)
}
