package aws

import (
	"context"
	"errors"
	"slices"
	"strings"

	"tendril/queue"
)

// DeadLetters is a queue that sends messages to its dead-letter queue itself, with the reason of their last failure as
// an attribute. SQS, which dead-letters messages too, tells nobody why.
type DeadLetters struct {
	*Queue
	// To returns the name of the dead-letter queue; "" when there is none, or it is not known.
	To func() string
	// ARN is that of the queue, and Instance names where messages are tried: each letter says both.
	ARN, Instance string
	// Last takes also the messages that failed at their last receive, which SQS moves otherwise.
	Last bool
	// HideAnswers leaves the answers of the app out.
	HideAnswers bool
}

var (
	errNoDeadLetterQueue = errors.New("the dead-letter queue is not known")
	errNoRoomForReason   = errors.New("the message has no room for the attribute " + queue.AttributeReason)
)

// TakesDeadLetters reports whether messages that failed at their last receive may be sent, or others.
func (d *DeadLetters) TakesDeadLetters(last bool) bool {
	if last {
		return d.Last
	}
	return d.To() != ""
}

// DeadLetter sends messages to the dead-letter queue. It returns nil when all were accepted, or one error for each. A
// message that has ten attributes, or the largest size, is not sent.
func (d *DeadLetters) DeadLetter(ctx context.Context, letters []queue.DeadLetter) []error {
	to := d.To()
	if to == "" {
		return slices.Repeat([]error{errNoDeadLetterQueue}, len(letters))
	}

	errs := make([]error, len(letters))
	var out []queue.Outgoing
	var places []int // of these in letters
	for i := range letters {
		if m, fits := d.complete(letters[i]).Outgoing(d.FIFO()); fits {
			out, places = append(out, m), append(places, i)
		} else {
			errs[i] = errNoRoomForReason
		}
	}

	for len(out) > 0 {
		n := fitting(out)
		sent, err := d.sibling(to).Send(ctx, out[:n])
		for i, place := range places[:n] {
			if errs[place] = err; err == nil {
				errs[place] = sent[i].Err
			}
		}
		out, places = out[n:], places[n:]
	}

	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}

// fitting returns how many of the messages, which are at least one, fit into one call.
func fitting(msgs []queue.Outgoing) int {
	size := 0
	for i := range msgs {
		if size += msgs[i].Size(); size > queue.MaxMessageSize && i > 0 || i == queue.MaxBatch {
			return i
		}
	}
	return len(msgs)
}

// complete adds to a letter what the queue knows.
func (d *DeadLetters) complete(l queue.DeadLetter) *queue.DeadLetter {
	l.Failure.Source, l.Failure.Instance = d.ARN, d.Instance
	if d.HideAnswers {
		l.Failure.Answer = ""
	}
	return &l
}

// sibling is another queue of the same account and region, where SQS wants dead-letter queues to be.
func (q *Queue) sibling(name string) *Queue {
	where := q.site
	where.queue = name
	return &Queue{sqs: q.sqs, site: where, url: q.url[:strings.LastIndexByte(q.url, '/')+1] + name}
}
