package aws

import (
	"context"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

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
