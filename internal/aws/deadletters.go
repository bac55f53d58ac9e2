package aws

import (
	"context"
	"errors"
	"slices"
	"strings"

	"tendril/queue"
)

// DeadLetters is a queue whose failed messages tendril moves to the dead-letter queue itself, to record the failure.
type DeadLetters struct {
	*Queue
	// To returns the dead-letter queue's name, or "".
	To func() string
	// ARN is the queue's ARN. Instance is this instance's name.
	ARN, Instance string
	// Last means that DeadLetter also accepts messages at their last receive, which SQS would otherwise move.
	Last        bool
	HideAnswers bool
}

var (
	errNoDeadLetterQueue = errors.New("unknown dead-letter queue")
	errNoRoomForReason   = errors.New("the message has no room for the attribute " + queue.AttributeReason)
)

// TakesDeadLetters reports whether DeadLetter accepts messages at their last receive, or other messages if last is
// false.
func (d *DeadLetters) TakesDeadLetters(last bool) bool {
	if last {
		return d.Last
	}
	return d.To() != ""
}

// DeadLetter sends messages to the dead-letter queue. It returns nil if all were accepted, otherwise one error per
// message. Messages without room for another attribute are not sent.
func (d *DeadLetters) DeadLetter(ctx context.Context, letters []queue.DeadLetter) []error {
	to := d.To()
	if to == "" {
		return slices.Repeat([]error{errNoDeadLetterQueue}, len(letters))
	}

	errs := make([]error, len(letters))
	var out []queue.Outgoing
	var places []int
	for i := range letters {
		m, fits := d.withSource(letters[i]).Outgoing(d.FIFO())
		if !fits {
			errs[i] = errNoRoomForReason
			continue
		}
		out = append(out, m)
		places = append(places, i)
	}

	for i, err := range d.Sibling(to).sendAll(ctx, out) {
		errs[places[i]] = err
	}
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}

func (q *Queue) sendAll(ctx context.Context, msgs []queue.Outgoing) (errs []error) {
	for len(msgs) > 0 {
		n := batchLength(msgs)
		sent, err := q.Send(ctx, msgs[:n])
		for i := range n {
			if err != nil {
				errs = append(errs, err)
			} else {
				errs = append(errs, sent[i].Err)
			}
		}
		msgs = msgs[n:]
	}
	return errs
}

func batchLength(msgs []queue.Outgoing) int {
	size := 0
	for i := range msgs {
		size += msgs[i].Size()
		if size > queue.MaxMessageSize && i > 0 || i == queue.MaxBatch {
			return i
		}
	}
	return len(msgs)
}

func (d *DeadLetters) withSource(l queue.DeadLetter) *queue.DeadLetter {
	l.Failure.Source, l.Failure.Instance = d.ARN, d.Instance
	if d.HideAnswers {
		l.Failure.Answer = ""
	}
	return &l
}

// Sibling returns another queue in the same account and region, as SQS requires of a dead-letter queue.
func (q *Queue) Sibling(name string) *Queue {
	where := q.site
	where.queue = name
	return &Queue{sqs: q.sqs, site: where, url: q.url[:strings.LastIndexByte(q.url, '/')+1] + name}
}
