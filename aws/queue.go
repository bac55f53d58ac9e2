package aws

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

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

// Queue finds a queue by its name, URL or ARN. It checks the credentials; for
// a name or an ARN it asks SQS for the URL, so that a queue which does not
// exist is a queue.ErrNoQueue here. A URL is believed: [Queue.Attributes] asks.
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
	q := &Queue{sqs: s, site: where, name: ref.Name, url: ref.URL}
	if q.url != "" {
		return q, nil
	}
	if q.url, err = q.lookUp(ctx, ref.Account); err != nil {
		return nil, err
	}
	return q, nil
}

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

// operatorPatience bounds an operator's call with all its attempts.
const operatorPatience = 30 * time.Second

// Create creates a queue and returns it. attrs are SQS attribute names and
// values, nil for defaults. It succeeds without effect when the queue exists
// with the same values of those attributes; otherwise the error has
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
	q := &Queue{sqs: s, site: where, name: ref.Name}
	err = q.operate(ctx, func(ctx context.Context) error {
		out, err := s.api.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &ref.Name, Attributes: attrs, Tags: tags},
			where.at)
		if err == nil {
			q.url = sdk.ToString(out.QueueUrl)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

// List returns the queues whose names begin with prefix, in the order of SQS,
// all pages of them.
func (s *SQS) List(ctx context.Context, prefix string) ([]*Queue, error) {
	where, err := s.site(ctx, Reference{Name: prefix + "*"})
	if err != nil {
		return nil, err
	}
	var queues []*Queue
	all := &Queue{sqs: s, site: where, name: prefix + "*"}
	err = all.operate(ctx, func(ctx context.Context) error {
		perPage := int32(1000)
		in := &sqs.ListQueuesInput{MaxResults: &perPage}
		if prefix != "" {
			in.QueueNamePrefix = &prefix
		}
		pages := sqs.NewListQueuesPaginator(s.api, in)
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx, where.at)
			if err != nil {
				return err
			}
			queues = append(queues, s.listed(where, page.QueueUrls)...)
		}
		return nil
	})
	return queues, err
}

// listed makes queues of the URLs of a list; what is no queue URL is left out.
func (s *SQS) listed(where site, urls []string) []*Queue {
	var queues []*Queue
	for _, url := range urls {
		if ref, err := ParseReference(url); err == nil {
			queues = append(queues, &Queue{sqs: s, site: where, name: ref.Name, url: url})
		}
	}
	return queues
}

// lookUp asks for the URL of the queue; account may be "" for one's own.
func (q *Queue) lookUp(ctx context.Context, account string) (url string, err error) {
	in := &sqs.GetQueueUrlInput{QueueName: &q.name}
	if account != "" {
		in.QueueOwnerAWSAccountId = &account
	}
	err = q.operate(ctx, func(ctx context.Context) error {
		out, err := q.sqs.api.GetQueueUrl(ctx, in, q.site.at)
		if err == nil {
			url = sdk.ToString(out.QueueUrl)
		}
		return err
	})
	return url, err
}

// Attributes returns every attribute of the queue under its SQS name. The
// three counts are approximate.
func (q *Queue) Attributes(ctx context.Context) (attrs map[string]string, err error) {
	err = q.operate(ctx, func(ctx context.Context) error {
		out, err := q.sqs.api.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
		}, q.site.at)
		if err == nil {
			attrs = out.Attributes
		}
		return err
	})
	return attrs, err
}

// SetAttributes changes attributes of the queue. SQS may need a minute, for
// retention a quarter of an hour, until they hold everywhere.
func (q *Queue) SetAttributes(ctx context.Context, attrs map[string]string) error {
	return q.operate(ctx, func(ctx context.Context) error {
		_, err := q.sqs.api.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &q.url, Attributes: attrs},
			q.site.at)
		return err
	})
}

// Purge removes all messages. SQS needs up to a minute, and refuses a second
// purge within it with queue.CodePurgeQueueInProgress.
func (q *Queue) Purge(ctx context.Context) error {
	return q.operate(ctx, func(ctx context.Context) error {
		_, err := q.sqs.api.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &q.url}, q.site.at)
		return err
	})
}

// DeleteQueue deletes the queue with all its messages. The same name can be
// created again after a minute.
func (q *Queue) DeleteQueue(ctx context.Context) error {
	return q.operate(ctx, func(ctx context.Context) error {
		_, err := q.sqs.api.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &q.url}, q.site.at)
		return err
	})
}

// DeadLetterSources returns the URLs of the queues that send their dead
// letters here, all pages of them.
func (q *Queue) DeadLetterSources(ctx context.Context) (urls []string, err error) {
	err = q.operate(ctx, func(ctx context.Context) error {
		pages := sqs.NewListDeadLetterSourceQueuesPaginator(q.sqs.api, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &q.url})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx, q.site.at)
			if err != nil {
				return err
			}
			urls = append(urls, page.QueueUrls...)
		}
		return nil
	})
	return urls, err
}

// operate makes a rare call within its time and explains its error.
func (q *Queue) operate(ctx context.Context, do func(context.Context) error) error {
	if err := q.sqs.Check(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, operatorPatience)
	defer cancel()
	return explain(ctx, q.name, q.site.endpoint.Host, do(limited))
}
