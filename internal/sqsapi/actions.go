package sqsapi

import (
	"encoding/base64"
	"slices"

	"tendril/queue"
)

func sqsActions() map[string]action {
	return map[string]action{
		"ChangeMessageVisibility":      newAction(changeMessageVisibility),
		"ChangeMessageVisibilityBatch": newAction(changeMessageVisibilityBatch),
		"DeleteMessage":                newAction(deleteMessage),
		"DeleteMessageBatch":           newAction(deleteMessageBatch),
		"ReceiveMessage":               newAction(receiveMessage),
		"SendMessage":                  newAction(sendMessage),
		"SendMessageBatch":             newAction(sendMessageBatch),
		"AddPermission":                newAction(addPermission),
		"RemovePermission":             newAction(removePermission),
		"StartMessageMoveTask":         newAction(startMessageMoveTask),
		"CancelMessageMoveTask":        newAction(cancelMessageMoveTask),
		"ListMessageMoveTasks":         newAction(listMessageMoveTasks),

		"CreateQueue":                ofAccount(newAction(createQueue)),
		"GetQueueUrl":                newAction(getQueueURL),
		"ListQueues":                 ofAccount(newAction(listQueues)),
		"ListDeadLetterSourceQueues": newAction(listDeadLetterSourceQueues),
		"GetQueueAttributes":         newAction(getQueueAttributes),
		"SetQueueAttributes":         newAction(setQueueAttributes),
		"TagQueue":                   newAction(tagQueue),
		"UntagQueue":                 newAction(untagQueue),

		"DeleteQueue": newAction(func(x *exchange, _ *queueRequest) (*nothing, error) {
			return nil, x.broker.DeleteQueue(x.ctx, x.queue)
		}),
		"PurgeQueue": newAction(func(x *exchange, _ *queueRequest) (*nothing, error) {
			_, err := x.broker.PurgeQueue(x.ctx, x.queue)
			return nil, err
		}),
		"ListQueueTags": newAction(func(x *exchange, _ *queueRequest) (*listQueueTagsResponse, error) {
			tags, err := x.broker.Tags(x.queue)
			return &listQueueTagsResponse{tags}, err
		}),
	}
}

type createQueueRequest struct {
	namedQueue
	Attributes map[string]string `query:"Attribute,Name"`
	Tags       map[string]string `json:"tags" query:"Tag,Key"`
}

func createQueue(x *exchange, in *createQueueRequest) (*queueURLResponse, error) {
	if err := x.authorizeDeadLetterQueue(in.Attributes); err != nil {
		return nil, err
	}
	err := x.broker.CreateQueue(x.ctx, in.QueueName, in.Attributes, in.Tags)
	return &queueURLResponse{x.queueURL(in.QueueName)}, err
}

type getQueueURLRequest struct {
	namedQueue
	QueueOwnerAWSAccountID string `json:"QueueOwnerAWSAccountId"`
}

func getQueueURL(x *exchange, in *getQueueURLRequest) (*queueURLResponse, error) {
	if owner := in.QueueOwnerAWSAccountID; owner != "" && owner != x.h.account {
		return nil, queue.ErrNoQueue // other accounts have no queues on this broker
	}
	return &queueURLResponse{x.queueURL(in.QueueName)}, x.checkExists(in.QueueName)
}

type queueURLResponse struct {
	QueueURL string `json:"QueueUrl"`
}

type listQueuesRequest struct {
	QueueNamePrefix string
	pageRequest
}

func listQueues(x *exchange, in *listQueuesRequest) (*listQueuesResponse, error) {
	names, next, err := in.page(x.broker.ListQueues(in.QueueNamePrefix))
	return &listQueuesResponse{x.queueURLs(names), next}, err
}

type listQueuesResponse struct {
	QueueURLs []string `json:"QueueUrls,omitempty" query:"QueueUrl"`
	NextToken string   `json:",omitempty"`
}

type listDeadLetterSourceQueuesRequest struct {
	queueRequest
	pageRequest
}

func listDeadLetterSourceQueues(x *exchange,
	in *listDeadLetterSourceQueuesRequest) (*listDeadLetterSourceQueuesResponse, error) {
	sources, err := x.broker.DeadLetterSources(x.queue)
	if err != nil {
		return nil, err
	}
	names, next, err := in.page(sources)
	return &listDeadLetterSourceQueuesResponse{x.queueURLs(names), next}, err
}

// As in SQS, the list's name starts with a lower-case letter, unlike in ListQueues, and the list is present even if
// empty.
type listDeadLetterSourceQueuesResponse struct {
	QueueURLs []string `json:"queueUrls" query:"QueueUrl"`
	NextToken string   `json:",omitempty"`
}

// maxListed is the maximum and default page size.
const maxListed = 1000

type pageRequest struct {
	MaxResults *int
	NextToken  string
}

// page returns up to MaxResults of the sorted names after the token, and the next token: "" at the end and, as in SQS,
// without MaxResults. A token is the last name of its page, so it stays valid when queues are created or deleted.
func (r *pageRequest) page(names []string) ([]string, string, error) {
	limit := maxListed
	if r.MaxResults != nil {
		limit = *r.MaxResults
		if limit < 1 || limit > maxListed {
			return nil, "", queue.Errorf(queue.CodeInvalidParameterValue,
				"Value for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and %d.",
				maxListed)
		}
	}

	names, err := r.afterToken(names)
	if err != nil || len(names) <= limit {
		return names, "", err
	}
	names = names[:limit]
	if r.MaxResults == nil {
		return names, "", nil
	}
	return names, base64.URLEncoding.EncodeToString([]byte(names[limit-1])), nil
}

func (r *pageRequest) afterToken(names []string) ([]string, error) {
	if r.NextToken == "" {
		return names, nil
	}
	last, err := base64.URLEncoding.DecodeString(r.NextToken)
	if err != nil {
		return nil, queue.Errorf(queue.CodeInvalidParameterValue, "Invalid or expired next token.")
	}

	if r.MaxResults == nil {
		return nil, queue.Errorf(queue.CodeInvalidParameterValue,
			"MaxResults is a mandatory parameter when you provide a value for NextToken.")
	}
	at, found := slices.BinarySearch(names, string(last))
	if found {
		at++
	}
	return names[at:], nil
}

type listQueueTagsResponse struct {
	Tags map[string]string `json:",omitempty" query:"Tag,Key"`
}

// Numbers are strings; times are in seconds since 1970.
type queueAttributes struct {
	Attributes map[string]string `json:",omitempty" query:"Attribute,Name"`
}

// queueAttributeNames are the names that a request may contain. Read-only.
var queueAttributeNames = []string{
	"All", "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible",
	"ContentBasedDeduplication", "CreatedTimestamp", "DeduplicationScope", "DelaySeconds", "FifoQueue",
	"FifoThroughputLimit", "KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId", "LastModifiedTimestamp", "MaximumMessageSize",
	"MessageRetentionPeriod", "Policy", "QueueArn", "ReceiveMessageWaitTimeSeconds", "RedriveAllowPolicy", "RedrivePolicy",
	"SqsManagedSseEnabled", "VisibilityTimeout",
}

// As in SQS, a request without names gets no attributes.
func getQueueAttributes(x *exchange, in *struct {
	queueRequest
	AttributeNames []string `query:"AttributeName"`
}) (*queueAttributes, error) {
	all, err := x.broker.Attributes(x.queue)
	if err != nil {
		return nil, err
	}

	wanted := make(map[string]string)
	for _, attribute := range in.AttributeNames {
		if !slices.Contains(queueAttributeNames, attribute) {
			return nil, queue.Errorf(queue.CodeInvalidAttributeName, "Unknown Attribute %s.", attribute)
		}
		if value, ok := all[attribute]; ok {
			wanted[attribute] = value
		}
	}

	if slices.Contains(in.AttributeNames, "All") {
		wanted = all
	}
	return &queueAttributes{wanted}, nil
}

type setQueueAttributesRequest struct {
	queueRequest
	Attributes map[string]string `query:"Attribute,Name" required:"true"`
}

func setQueueAttributes(x *exchange, in *setQueueAttributesRequest) (*nothing, error) {
	if err := x.authorizeDeadLetterQueue(in.Attributes); err != nil {
		return nil, err
	}
	return nil, x.broker.SetAttributes(x.ctx, x.queue, in.Attributes)
}

type tagQueueRequest struct {
	queueRequest
	Tags map[string]string `query:"Tag,Key" required:"true"`
}

func tagQueue(x *exchange, in *tagQueueRequest) (*nothing, error) {
	return nil, x.broker.SetTags(x.ctx, x.queue, in.Tags, nil)
}

type untagQueueRequest struct {
	queueRequest
	TagKeys []string `query:"TagKey" required:"true"`
}

func untagQueue(x *exchange, in *untagQueueRequest) (*nothing, error) {
	return nil, x.broker.SetTags(x.ctx, x.queue, nil, in.TagKeys)
}
