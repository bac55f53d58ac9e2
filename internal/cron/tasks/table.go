package tasks

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"tendril/internal/aws"
	"tendril/internal/registry"
	"tendril/queue"
)

type sqsSender struct {
	sqs  *aws.SQS
	name string
	home *aws.Queue

	mu     sync.Mutex
	queues map[string]*aws.Queue
}

func (s *sqsSender) Send(ctx context.Context, name string, m queue.Outgoing) (queue.Sent, error) {
	q, err := s.find(ctx, name)
	if err != nil {
		return queue.Sent{}, errors.Join(registry.ErrNotSent, err)
	}
	sent, err := q.SendOnce(ctx, m)
	return sent, errors.Join(err, sent.Err)
}

func (s *sqsSender) find(ctx context.Context, name string) (*aws.Queue, error) {
	if s.home != nil && name == s.name {
		return s.home, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[name]; q != nil {
		return q, nil
	}
	q, err := s.sqs.Queue(ctx, name)
	if err == nil {
		s.queues[name] = q
	}
	return q, err
}

func prepareTable(ctx context.Context, table *aws.Table, opts *RegistryOptions, log *slog.Logger) {
	err := table.Check(ctx)
	if err != nil && opts.Create {
		err = table.Create(ctx, opts.Tags)
	}
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil:
		log.Warn("registry table not available, periodic tasks wait for it", "table", opts.Table, "err", err)
	case opts.Create:
		enableExpiry(ctx, table, opts.Table, log)
	default:
		warnWithoutExpiry(ctx, table, opts.Table, log)
	}
}

const neverRemoved = "records of old runs are never removed from the registry table"

func enableExpiry(ctx context.Context, table *aws.Table, name string, log *slog.Logger) {
	if err := table.Expire(ctx); err != nil {
		log.Warn(neverRemoved, "table", name, "err", err)
	}
}

func warnWithoutExpiry(ctx context.Context, table *aws.Table, name string, log *slog.Logger) {
	expires, attribute, err := table.Expires(ctx)
	if err != nil { // needs a permission that nothing else needs
		log.Debug("time to live of the registry table unknown", "table", name, "err", err)
		return
	}

	switch {
	case expires:
		return
	case attribute != "":
		log.Warn(neverRemoved, "table", name,
			"reason", "its time to live uses an attribute other than \"expires\"",
			"attribute", attribute, "hint", "name another table with --registry-table")
	default:
		log.Warn(neverRemoved, "table", name,
			"reason", "it has no time to live", "hint", "add --registry-create, or run aws "+
				"dynamodb update-time-to-live --table-name "+name+" --time-to-live-specification "+
				"Enabled=true,AttributeName=expires")
	}
}
