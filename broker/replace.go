package broker

import (
	"context"

	"tendril/queue"
)

// Replace sends msg to the queue named to, which may be q itself, and removes the message with the ID id, in one
// transaction. The ledger counts the removed message as purged. If a FIFO queue treats msg as a duplicate, nothing
// is removed and the error is InvalidParameterValue. If the message is missing, the error has the code
// [queue.CodeResourceNotFound].
func (q *Queue) Replace(ctx context.Context, id, to string, msg queue.Outgoing) (queue.Sent, error) {
	source, err := q.live(ctx, 0)
	if err != nil {
		return queue.Sent{}, err
	}
	target, err := q.b.live(to)
	if err != nil {
		return queue.Sent{}, err
	}

	s, err := newSending(target, []queue.Outgoing{msg})
	if err != nil {
		return queue.Sent{}, err
	}
	if len(s.items) == 0 {
		return queue.Sent{}, s.sent[0].Err
	}

	reserved, err := source.reserve(ctx, []string{id})
	if err != nil {
		return queue.Sent{}, err
	}
	if len(reserved) == 0 {
		return queue.Sent{}, errNoMessage(q.name, id)
	}

	r := &replacement{sending: s, removal: &removal{ctx: ctx, q: source, messages: reserved, cause: CauseDeleted}}
	if err := q.b.writer.do(r, needsFsync|needsSpace); err != nil {
		return queue.Sent{}, err
	}

	switch {
	case !r.found:
		return queue.Sent{}, errNoMessage(q.name, id)
	case !r.replaced():
		return queue.Sent{}, errInvalid(
			"Queue %s had a message with this deduplication ID in the last 5 minutes. Choose another ID.", to)
	}

	s.setIDs()
	return s.sent[0], nil
}

type replacement struct {
	sending *sending
	removal *removal
	found   bool
}

func (r *replacement) replaced() bool { return r.found && r.sending.items[0].fresh() }

func (r *replacement) apply(t *tx) {
	q := r.removal.q
	r.found = !t.gone(q) && t.row(q, r.removal.messages[0].key) != nil
	if !r.found {
		return
	}
	r.sending.apply(t)
	if r.replaced() {
		r.removal.apply(t)
	}
}

var errNotReplaced = errInvalid("The message was not replaced.")

func (r *replacement) onCommit(err error) error {
	if err == nil && !r.replaced() {
		_ = r.removal.onCommit(errNotReplaced) // releases the message
		return nil
	}
	if err := r.removal.onCommit(err); err != nil {
		return err
	}
	return r.sending.onCommit(nil)
}
