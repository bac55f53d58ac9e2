package main

import (
	"context"
	"errors"
	"iter"

	"tendril/console"
	"tendril/queue"
)

// held is a message that a verb looks at.
type held struct {
	console.Message
	receipt string // of the receive that showed it; "" on the embedded queue
}

// pile is the messages of one queue, to be looked at and acted upon. The
// embedded queue and Amazon SQS fill it in different ways.
type pile interface {
	// read ranges over the messages, oldest first, in portions of at most n.
	// It ends after an error.
	read(ctx context.Context, n int) iter.Seq2[[]held, error]
	// redrive moves messages to the queue to, or back to where each came from
	// when to is "", and returns how many were moved.
	redrive(ctx context.Context, messages []held, to string) (int, error)
	// remove deletes messages and returns how many there were.
	remove(ctx context.Context, messages []held) (int, error)
	// release gives back what was read and neither moved nor removed.
	release(ctx context.Context) error
}

// embeddedPile is a queue of the running environment. Looking changes nothing.
type embeddedPile struct {
	client *console.Client
	queue  string
	filter console.Filter
	// ids, when there are any, are looked up instead of reading everything.
	ids []string
}

func (p *embeddedPile) read(ctx context.Context, n int) iter.Seq2[[]held, error] {
	if len(p.ids) > 0 {
		return p.named(ctx)
	}
	return func(yield func([]held, error) bool) {
		f := p.filter
		f.Limit = n
		for {
			page, next, err := p.client.Messages(ctx, p.queue, f)
			if err != nil {
				yield(nil, err)
				return
			}
			portion := make([]held, len(page))
			for i := range page {
				portion[i] = held{Message: page[i]}
			}
			if !yield(portion, nil) || next == "" {
				return
			}
			f.After = next
		}
	}
}

// named reads the messages of ids, each a portion; those that are gone are
// passed over.
func (p *embeddedPile) named(ctx context.Context) iter.Seq2[[]held, error] {
	return func(yield func([]held, error) bool) {
		for _, id := range p.ids {
			m, err := p.client.Message(ctx, p.queue, id)
			if errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
				continue
			}
			if !yield([]held{{Message: m}}, err) || err != nil {
				return
			}
		}
	}
}

func (p *embeddedPile) redrive(ctx context.Context, messages []held, to string) (int, error) {
	return p.client.Move(ctx, p.queue, to, ids(messages))
}

func (p *embeddedPile) remove(ctx context.Context, messages []held) (int, error) {
	return p.client.Delete(ctx, p.queue, ids(messages))
}

func (p *embeddedPile) release(context.Context) error { return nil }

func ids(messages []held) []string {
	all := make([]string, len(messages))
	for i := range messages {
		all[i] = messages[i].ID
	}
	return all
}
