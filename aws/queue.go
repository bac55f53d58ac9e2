package aws

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"tendril/queue"
)

// Queue is one SQS queue. All methods are safe for concurrent use.
type Queue struct {
	sqs       *SQS
	site      site
	name, url string
}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.name }

// URL returns the queue URL.
func (q *Queue) URL() string { return q.url }

// Region returns the region that the queue lives in.
func (q *Queue) Region() string { return q.site.region }

// FIFO reports whether this is a FIFO queue.
func (q *Queue) FIFO() bool { return Reference{Name: q.name}.FIFO() }

const (
	// patience is how long one attempt of a short call may take.
	patience = 10 * time.Second
	// longestWait is what a queue may have as its own wait time.
	longestWait = 20 * time.Second
)

// Receive asks for up to req.Max messages; durations are rounded up to whole
// seconds. Messages that arrived damaged are left out: see [Events.Corrupted].
//
// It is tried once. When an answer was lost, the messages in it were counted
// as received; asking again at once would count others. The caller asks again
// anyway. A ctx that ends cuts the poll off on this side: SQS may still give
// messages to it, which come back after their visibility timeout.
func (q *Queue) Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error) {
	wait := longestWait
	if req.Wait != nil {
		wait = *req.Wait
	}
	var messages []queue.Message
	reader := messageReader{checker: newChecker()}
	err := q.call(ctx, call{
		action:   "ReceiveMessage",
		body:     appendReceive(make([]byte, 0, 512), q.url, req),
		patience: wait + patience,
		once:     true,
	}, func(body []byte) (err error) {
		messages, err = reader.read(body, func(id, part string) {
			q.sqs.caller.events.corrupted(Corruption{Queue: q.name, MessageID: id, Part: part})
		})
		return err
	})
	return messages, err
}

// Delete removes the messages of the receipts, in calls of ten. It returns one
// error for each receipt, nil entries for those confirmed, and nil when all
// were. Deleting twice does no harm, so failed calls are repeated.
func (q *Queue) Delete(ctx context.Context, receipts []string) []error {
	return inTens(receipts, func(part []string) ([]entryResult, error) {
		return q.batch(ctx, "DeleteMessageBatch", len(part), func(dst []byte, i int) []byte {
			return appendReceipt(dst, part[i])
		})
	})
}

// Expire is Delete: SQS keeps no account of why a message is deleted.
func (q *Queue) Expire(ctx context.Context, receipts []string) []error {
	return q.Delete(ctx, receipts)
}

// ChangeVisibility applies the changes, in calls of ten; durations are rounded
// up to whole seconds. It returns one error for each change, and nil when all
// succeeded. Failed calls are repeated.
func (q *Queue) ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error {
	return inTens(changes, func(part []queue.VisibilityChange) ([]entryResult, error) {
		return q.batch(ctx, "ChangeMessageVisibilityBatch", len(part), func(dst []byte, i int) []byte {
			return appendChange(dst, part[i])
		})
	})
}

// inTens calls do with at most [queue.MaxBatch] items at a time and gathers
// the errors; nil when there are none.
func inTens[T any](items []T, do func(part []T) ([]entryResult, error)) []error {
	var errs []error
	for first := 0; first < len(items); first += queue.MaxBatch {
		part := items[first:min(first+queue.MaxBatch, len(items))]
		results, err := do(part)
		for i := range part {
			itemErr := err
			if err == nil {
				itemErr = results[i].err
			}
			if itemErr != nil && errs == nil {
				errs = make([]error, len(items))
			}
			if itemErr != nil {
				errs[first+i] = itemErr
			}
		}
	}
	return errs
}

// Send sends up to [queue.MaxBatch] messages in one call. It returns one
// [queue.Sent] for each, in order; entries may fail one by one. The error is
// for the whole call.
//
// Like every AWS client it repeats a call whose answer was lost, and so may
// send twice to a standard queue. On a FIFO queue deduplication prevents that.
func (q *Queue) Send(ctx context.Context, msgs []queue.Outgoing) ([]queue.Sent, error) {
	return q.send(ctx, msgs, false)
}

// SendOnce sends one message in a call that is never repeated, so that there is
// one at most. An error below which a [net.OpError] of a dial lies tells that
// nothing was sent.
func (q *Queue) SendOnce(ctx context.Context, m queue.Outgoing) (queue.Sent, error) {
	sent, err := q.send(ctx, []queue.Outgoing{m}, true)
	if err != nil {
		return queue.Sent{}, err
	}
	return sent[0], nil
}

func (q *Queue) send(ctx context.Context, msgs []queue.Outgoing, once bool) ([]queue.Sent, error) {
	sent := make([]queue.Sent, len(msgs))
	var good []int // places in msgs of what can be sent at all
	for i := range msgs {
		if sent[i].Err = sendable(&msgs[i]); sent[i].Err == nil {
			good = append(good, i)
		}
	}
	if len(good) == 0 && len(msgs) > 0 {
		return sent, nil
	}
	results, err := q.batchCall(ctx, "SendMessageBatch", once, len(good), func(dst []byte, i int) []byte {
		return appendOutgoing(dst, &msgs[good[i]])
	})
	if err != nil {
		return nil, err
	}
	checker := newChecker()
	for i, r := range results {
		out := &sent[good[i]]
		out.ID, out.SequenceNumber, out.Err = r.id, r.sequence, r.err
		if part := checker.sent(&msgs[good[i]], &r); r.err == nil && part != "" {
			q.sqs.caller.events.corrupted(Corruption{Queue: q.name, MessageID: r.id, Part: part, Sent: true})
			out.Err = queue.Errorf(queue.CodeInvalidMessageContents,
				"message %s was damaged on its way: the checksum of its %s does not match; send it again and delete this one",
				r.id, part)
		}
	}
	return sent, nil
}

// sendable refuses what JSON cannot carry byte for byte.
func sendable(m *queue.Outgoing) error {
	texts := []string{m.Body, m.GroupID, m.DedupID, m.TraceHeader}
	for _, a := range m.Attributes {
		texts = append(texts, a.Name, a.Type)
		if !a.IsBinary() {
			texts = append(texts, a.Value)
		}
	}
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return queue.Errorf(queue.CodeInvalidMessageContents,
				"the message is not valid UTF-8: send bytes as a Binary attribute, or encode them (base64)")
		}
	}
	return nil
}

// batch makes a batch call with n entries. An entry that the answer does not
// mention counts as failed: nothing confirms it.
func (q *Queue) batch(ctx context.Context, action string, n int, entry func(dst []byte, i int) []byte) ([]entryResult,
	error) {
	return q.batchCall(ctx, action, false, n, entry)
}

func (q *Queue) batchCall(ctx context.Context, action string, once bool, n int,
	entry func(dst []byte, i int) []byte) ([]entryResult, error) {
	var results []entryResult
	err := q.call(ctx, call{
		action:   action,
		body:     appendBatch(make([]byte, 0, 4096), q.url, n, entry),
		patience: patience,
		once:     once,
	}, func(body []byte) (err error) {
		results, err = readBatch(body, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range results {
		if !results[i].answered {
			results[i].err = &queue.Error{Code: queue.CodeUnreachable,
				Message: fmt.Sprintf("the answer to %s does not mention entry %d of %d", action, i+1, n)}
		}
	}
	return results, nil
}

func (q *Queue) call(ctx context.Context, c call, read func([]byte) error) error {
	c.site, c.queue = q.site, q.name
	return q.sqs.caller.do(ctx, c, read)
}
