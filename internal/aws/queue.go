package aws

import (
	"context"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"tendril/queue"
)

// Queue is an SQS queue. It is safe for concurrent use.
type Queue struct {
	sqs  *SQS
	site site
	url  string
}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.site.queue }

// URL returns the queue's URL.
func (q *Queue) URL() string { return q.url }

// Region returns the queue's region.
func (q *Queue) Region() string { return q.site.region }

// FIFO reports whether this is a FIFO queue.
func (q *Queue) FIFO() bool { return queue.IsFIFO(q.site.queue) }

// Queue returns a queue by name, URL or ARN, and checks that there are credentials. For a name or ARN, it asks SQS for
// the URL, and returns queue.ErrNoQueue if the queue is missing.
func (s *SQS) Queue(ctx context.Context, reference string) (*Queue, error) {
	ref, err := ParseReference(reference)
	if err != nil {
		return nil, err
	}
	if err := s.Check(ctx); err != nil {
		return nil, err
	}
	where, err := s.site(ctx, ref)
	if err != nil {
		return nil, err
	}

	q := &Queue{sqs: s, site: where, url: ref.URL}
	if q.url != "" {
		return q, nil
	}

	in := &sqs.GetQueueUrlInput{QueueName: &ref.Name}
	if ref.Account != "" {
		in.QueueOwnerAWSAccountId = &ref.Account
	}

	out, err := callSDK(ctx, q, s.api.GetQueueUrl, in)
	if err != nil {
		return nil, err
	}

	q.url = sdk.ToString(out.QueueUrl)
	return q, nil
}

const (
	// callTimeout limits one attempt, excluding the wait for messages.
	callTimeout = 10 * time.Second
	longestWait = 20 * time.Second
)

// Receive returns up to req.Max messages, without damaged ones. Durations are rounded up to seconds.
//
// It retries only a signature rejected because of the local clock. If ctx ends, SQS may still return messages to the
// abandoned call; they become visible after their visibility timeout.
func (q *Queue) Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error) {
	wait := longestWait
	if req.Wait != nil {
		wait = *req.Wait
	}

	var messages []queue.Message
	err := q.sqs.perform(ctx, call{
		site:    &q.site,
		action:  "ReceiveMessage",
		body:    appendReceive(make([]byte, 0, 512), q.url, req),
		timeout: wait + callTimeout,
		once:    true,
	}, func(body []byte) (err error) {
		messages, err = readMessages(body, func(id, part string) {
			q.sqs.corrupted(Corruption{Queue: q.site.queue, MessageID: id, Part: part})
		})
		return err
	})
	return messages, err
}

// Delete deletes messages in batches of ten, with retries. It returns nil if SQS confirms all, otherwise one error per
// receipt handle.
func (q *Queue) Delete(ctx context.Context, receipts []string) []error {
	return inBatches(receipts, func(part []string) ([]entryResult, error) {
		return q.callBatch(ctx, "DeleteMessageBatch", false, len(part), func(dst []byte, i int) []byte {
			return appendReceipt(dst, part[i])
		})
	})
}

// Expire is Delete: SQS does not record why messages are deleted.
func (q *Queue) Expire(ctx context.Context, receipts []string) []error {
	return q.Delete(ctx, receipts)
}

// ChangeVisibility applies changes in batches of ten, with retries. Durations are rounded up to seconds. It returns nil
// if all succeeded, otherwise one error per change.
func (q *Queue) ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error {
	return inBatches(changes, func(part []queue.VisibilityChange) ([]entryResult, error) {
		return q.callBatch(ctx, "ChangeMessageVisibilityBatch", false, len(part), func(dst []byte, i int) []byte {
			return appendChange(dst, &part[i])
		})
	})
}

func inBatches[T any](items []T, call func(part []T) ([]entryResult, error)) []error {
	var errs []error
	done := 0
	for part := range slices.Chunk(items, queue.MaxBatch) {
		results, err := call(part)
		for i := range part {
			failed := err
			if err == nil {
				failed = results[i].sent.Err
			}
			if failed == nil {
				continue
			}
			if errs == nil {
				errs = make([]error, len(items))
			}
			errs[done+i] = failed
		}
		done += len(part)
	}
	return errs
}

// Send sends up to [queue.MaxBatch] messages in one call. It returns one [queue.Sent] per message, in order.
//
// Retries can duplicate messages on a standard queue; FIFO queues deduplicate them.
func (q *Queue) Send(ctx context.Context, msgs []queue.Outgoing) ([]queue.Sent, error) {
	return q.send(ctx, msgs, false)
}

// SendOnce is Send for one message without retries. If the error wraps a [net.OpError] for a dial, nothing was sent.
func (q *Queue) SendOnce(ctx context.Context, m queue.Outgoing) (queue.Sent, error) {
	sent, err := q.send(ctx, []queue.Outgoing{m}, true)
	if err != nil {
		return queue.Sent{}, err
	}
	return sent[0], nil
}

func (q *Queue) send(ctx context.Context, msgs []queue.Outgoing, once bool) ([]queue.Sent, error) {
	sent := make([]queue.Sent, len(msgs))
	var good []int
	for i := range msgs {
		sent[i].Err = checkOutgoing(&msgs[i])
		if sent[i].Err == nil {
			good = append(good, i)
		}
	}
	if len(good) == 0 && len(msgs) > 0 {
		return sent, nil
	}

	results, err := q.callBatch(ctx, "SendMessageBatch", once, len(good), func(dst []byte, i int) []byte {
		return appendOutgoing(dst, &msgs[good[i]])
	})
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		m := &msgs[good[i]]
		sent[good[i]] = r.sent
		if part := damagedPart(m.Body, r.bodySum, m.Attributes, r.attributesSum); r.sent.Err == nil && part != "" {
			sent[good[i]].Err = q.damagedInTransit(r.sent.ID, part)
		}
	}
	return sent, nil
}

func (q *Queue) damagedInTransit(id, part string) error {
	q.sqs.corrupted(Corruption{Queue: q.site.queue, MessageID: id, Part: part, Sent: true})
	return queue.Errorf(queue.CodeInvalidMessageContents,
		"message %s was damaged in transit: the checksum of its %s does not match; send it again and delete this copy",
		id, part)
}

// checkOutgoing rejects invalid UTF-8, which JSON would change.
func checkOutgoing(m *queue.Outgoing) error {
	if !m.IsValidUTF8() {
		return queue.Errorf(queue.CodeInvalidMessageContents,
			"the message is not valid UTF-8: send bytes as a Binary attribute, or encode them (base64)")
	}
	return nil
}

// callBatch reports entries missing from the response as failed.
func (q *Queue) callBatch(ctx context.Context, action string, once bool, n int,
	entry func(dst []byte, i int) []byte) ([]entryResult, error) {
	var results []entryResult
	err := q.sqs.perform(ctx, call{
		site:    &q.site,
		action:  action,
		body:    appendBatch(make([]byte, 0, 4096), q.url, n, entry),
		timeout: callTimeout,
		once:    once,
	}, func(body []byte) (err error) {
		results, err = readBatch(body, n)
		return err
	})
	if err != nil {
		return nil, err
	}

	for i := range results {
		if !results[i].answered {
			results[i].sent.Err = queue.Errorf(queue.CodeUnreachable, "the response to %s has no result for entry %d of %d", action,
				i+1, n)
		}
	}
	return results, nil
}

const sdkTimeout = 30 * time.Second

func callSDK[In, Out any](ctx context.Context, q *Queue,
	do func(context.Context, *In, ...func(*sqs.Options)) (*Out, error), in *In) (*Out, error) {
	if err := q.sqs.Check(ctx); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, sdkTimeout)
	defer cancel()
	out, err := do(limited, in, q.site.setEndpoint)
	return out, explainSQS(ctx, q.site.queue, q.site.endpoint.Host, err)
}

// Create creates a queue with SQS attributes and tags. If the queue exists with other attributes, the error code is
// queue.CodeQueueNameExists.
func (s *SQS) Create(ctx context.Context, name string, attrs, tags map[string]string) (*Queue, error) {
	ref, err := ParseReference(name)
	if err != nil {
		return nil, err
	}
	where, err := s.site(ctx, ref)
	if err != nil {
		return nil, err
	}

	q := &Queue{sqs: s, site: where}
	out, err := callSDK(ctx, q, s.api.CreateQueue,
		&sqs.CreateQueueInput{QueueName: &ref.Name, Attributes: attrs, Tags: tags})
	if err != nil {
		return nil, err
	}

	q.url = sdk.ToString(out.QueueUrl)
	return q, nil
}

// List returns the queues whose names start with prefix, except those with invalid URLs.
func (s *SQS) List(ctx context.Context, prefix string) ([]*Queue, error) {
	where, err := s.site(ctx, Reference{Name: prefix + "*"}) // for errors
	if err != nil {
		return nil, err
	}

	var queues []*Queue
	prefixed := &Queue{sqs: s, site: where}
	in := &sqs.ListQueuesInput{MaxResults: sdk.Int32(1000)}
	if prefix != "" {
		in.QueueNamePrefix = &prefix
	}

	for {
		page, err := callSDK(ctx, prefixed, s.api.ListQueues, in)
		if err != nil {
			return nil, err
		}
		for _, url := range page.QueueUrls {
			if ref, err := ParseReference(url); err == nil {
				own := where
				own.queue = ref.Name
				queues = append(queues, &Queue{sqs: s, site: own, url: url})
			}
		}
		if in.NextToken = page.NextToken; sdk.ToString(in.NextToken) == "" {
			return queues, nil
		}
	}
}

// Attributes returns all attributes by their SQS names. Message counts are approximate.
func (q *Queue) Attributes(ctx context.Context) (map[string]string, error) {
	out, err := callSDK(ctx, q, q.sqs.api.GetQueueAttributes, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// SetAttributes changes attributes. SQS applies changes within 60 seconds, or 15 minutes for the retention period.
func (q *Queue) SetAttributes(ctx context.Context, attrs map[string]string) error {
	_, err := callSDK(ctx, q, q.sqs.api.SetQueueAttributes,
		&sqs.SetQueueAttributesInput{QueueUrl: &q.url, Attributes: attrs})
	return err
}

// Purge deletes all messages. SQS takes up to 60 seconds, and meanwhile rejects another purge with
// queue.CodePurgeQueueInProgress.
func (q *Queue) Purge(ctx context.Context) error {
	_, err := callSDK(ctx, q, q.sqs.api.PurgeQueue, &sqs.PurgeQueueInput{QueueUrl: &q.url})
	return err
}

// DeleteQueue deletes the queue and its messages. SQS allows its name again after 60 seconds.
func (q *Queue) DeleteQueue(ctx context.Context) error {
	_, err := callSDK(ctx, q, q.sqs.api.DeleteQueue, &sqs.DeleteQueueInput{QueueUrl: &q.url})
	return err
}

// DeadLetterSources returns the URLs of all queues that use this queue as their dead-letter queue.
func (q *Queue) DeadLetterSources(ctx context.Context) (urls []string, err error) {
	in := &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &q.url}
	for more := true; more; more = sdk.ToString(in.NextToken) != "" {
		page, err := callSDK(ctx, q, q.sqs.api.ListDeadLetterSourceQueues, in)
		if err != nil {
			return urls, err
		}
		urls = append(urls, page.QueueUrls...)
		in.NextToken = page.NextToken
	}
	return urls, nil
}
