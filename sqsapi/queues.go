package sqsapi

import (
	"context"
	"encoding/base64"

	"tendril/queue"
)

// maxListed is the longest page of a list, and its length when the client
// does not say.
const maxListed = 1000

type createQueueRequest struct {
	QueueName  string
	Attributes map[string]string
	Tags       map[string]string `json:"tags"`
}

type queueURLResponse struct {
	QueueURL string `json:"QueueUrl"`
}

type getQueueURLRequest struct {
	QueueName              string
	QueueOwnerAWSAccountID string `json:"QueueOwnerAWSAccountId"`
}

type queueRequest struct {
	QueueURL string `json:"QueueUrl"`
}

type listQueuesRequest struct {
	QueueNamePrefix string
	MaxResults      *int
	NextToken       string
}

type listQueuesResponse struct {
	QueueURLs []string `json:"QueueUrls,omitempty"`
	NextToken string   `json:",omitempty"`
}

type listDeadLetterSourceQueuesRequest struct {
	QueueURL   string `json:"QueueUrl"`
	MaxResults *int
	NextToken  string
}

// listDeadLetterSourceQueuesResponse spells its list in Amazon's way, unlike
// ListQueues, and has it even when empty.
type listDeadLetterSourceQueuesResponse struct {
	QueueURLs []string `json:"queueUrls"`
	NextToken string   `json:",omitempty"`
}

func (h *Handler) createQueue(ctx context.Context, c caller, in *createQueueRequest) (*queueURLResponse, error) {
	if in.QueueName == "" {
		return nil, missing("QueueName")
	}
	if err := h.broker.CreateQueue(ctx, in.QueueName, in.Attributes, in.Tags); err != nil {
		return nil, err
	}
	return &queueURLResponse{h.queueURL(c, in.QueueName)}, nil
}

// getQueueURL answers for queues of our own account only; "" stands for it.
func (h *Handler) getQueueURL(_ context.Context, c caller, in *getQueueURLRequest) (*queueURLResponse, error) {
	if in.QueueName == "" {
		return nil, missing("QueueName")
	}
	if owner := in.QueueOwnerAWSAccountID; owner != "" && owner != h.account {
		return nil, queue.ErrNoQueue
	}
	if err := h.exists(in.QueueName); err != nil {
		return nil, err
	}
	return &queueURLResponse{h.queueURL(c, in.QueueName)}, nil
}

// exists returns an error unless there is a queue of that name.
func (h *Handler) exists(name string) error {
	_, err := h.broker.Tags(name)
	return err
}

func (h *Handler) deleteQueue(ctx context.Context, in *queueRequest) error {
	name, err := queueName(in.QueueURL)
	if err != nil {
		return err
	}
	return h.broker.DeleteQueue(ctx, name)
}

func (h *Handler) purgeQueue(ctx context.Context, in *queueRequest) error {
	name, err := queueName(in.QueueURL)
	if err != nil {
		return err
	}
	_, err = h.broker.PurgeQueue(ctx, name)
	return err
}

func (h *Handler) listQueues(_ context.Context, c caller, in *listQueuesRequest) (*listQueuesResponse, error) {
	names, next, err := page(h.broker.ListQueues(in.QueueNamePrefix), in.MaxResults, in.NextToken)
	if err != nil {
		return nil, err
	}
	return &listQueuesResponse{h.queueURLs(c, names), next}, nil
}

func (h *Handler) listDeadLetterSourceQueues(_ context.Context, c caller,
	in *listDeadLetterSourceQueuesRequest) (*listDeadLetterSourceQueuesResponse, error) {
	name, err := queueName(in.QueueURL)
	if err != nil {
		return nil, err
	}
	sources, err := h.broker.DeadLetterSources(name)
	if err != nil {
		return nil, err
	}
	names, next, err := page(sources, in.MaxResults, in.NextToken)
	if err != nil {
		return nil, err
	}
	return &listDeadLetterSourceQueuesResponse{h.queueURLs(c, names), next}, nil
}

// queueURLs never returns nil.
func (h *Handler) queueURLs(c caller, names []string) []string {
	urls := make([]string, len(names))
	for i, name := range names {
		urls[i] = h.queueURL(c, name)
	}
	return urls
}

// page returns the names that follow the token, at most most of them, and the
// token of the next page, "" at the end. As in SQS, a client that gives no
// limit gets no token. names are sorted; a token is the last name of its page,
// so that it stays good when queues come and go.
func page(names []string, most *int, token string) ([]string, string, error) {
	limit := maxListed
	if most != nil {
		if *most < 1 || *most > maxListed {
			return nil, "", queue.Errorf(queue.CodeInvalidParameterValue,
				"Value for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and %d.", maxListed)
		}
		limit = *most
	}
	if token != "" {
		last, err := base64.URLEncoding.DecodeString(token)
		if err != nil {
			return nil, "", queue.Errorf(queue.CodeInvalidParameterValue, "Invalid or expired next token.")
		}
		if most == nil {
			return nil, "", queue.Errorf(queue.CodeInvalidParameterValue,
				"MaxResults is a mandatory parameter when you provide a value for NextToken.")
		}
		names = after(names, string(last))
	}
	if len(names) <= limit {
		return names, "", nil
	}
	names = names[:limit]
	if most == nil {
		return names, "", nil
	}
	return names, base64.URLEncoding.EncodeToString([]byte(names[limit-1])), nil
}

// after returns the part of the sorted names that follows last.
func after(names []string, last string) []string {
	for i, name := range names {
		if name > last {
			return names[i:]
		}
	}
	return nil
}
