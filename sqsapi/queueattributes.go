package sqsapi

import (
	"context"

	"tendril/queue"
)

type getQueueAttributesRequest struct {
	QueueURL       string `json:"QueueUrl"`
	AttributeNames []string
}

// queueAttributes holds numbers as text, and times in seconds since 1970.
type queueAttributes struct {
	Attributes map[string]string `json:",omitempty"`
}

type setQueueAttributesRequest struct {
	QueueURL   string `json:"QueueUrl"`
	Attributes map[string]string
}

type listQueueTagsResponse struct {
	Tags map[string]string `json:",omitempty"`
}

type tagQueueRequest struct {
	QueueURL string `json:"QueueUrl"`
	Tags     map[string]string
}

type untagQueueRequest struct {
	QueueURL string `json:"QueueUrl"`
	TagKeys  []string
}

// queueAttributeNames is never written to. A queue need not have them all.
var queueAttributeNames = map[string]bool{
	"All":                                   true,
	"ApproximateNumberOfMessages":           true,
	"ApproximateNumberOfMessagesDelayed":    true,
	"ApproximateNumberOfMessagesNotVisible": true,
	"ContentBasedDeduplication":             true,
	"CreatedTimestamp":                      true,
	"DeduplicationScope":                    true,
	"DelaySeconds":                          true,
	"FifoQueue":                             true,
	"FifoThroughputLimit":                   true,
	"KmsDataKeyReusePeriodSeconds":          true,
	"KmsMasterKeyId":                        true,
	"LastModifiedTimestamp":                 true,
	"MaximumMessageSize":                    true,
	"MessageRetentionPeriod":                true,
	"Policy":                                true,
	"QueueArn":                              true,
	"ReceiveMessageWaitTimeSeconds":         true,
	"RedriveAllowPolicy":                    true,
	"RedrivePolicy":                         true,
	"SqsManagedSseEnabled":                  true,
	"VisibilityTimeout":                     true,
}

// getQueueAttributes returns the attributes that were named and that the
// queue has; without names it returns none, as SQS does.
func (h *Handler) getQueueAttributes(_ context.Context, _ caller, in *getQueueAttributesRequest) (*queueAttributes,
	error) {
	name, err := queueName(in.QueueURL)
	if err != nil {
		return nil, err
	}
	all, err := h.broker.Attributes(name)
	if err != nil {
		return nil, err
	}
	wanted := make(map[string]string)
	everything := false
	for _, attribute := range in.AttributeNames {
		if !queueAttributeNames[attribute] {
			return nil, queue.Errorf(queue.CodeInvalidAttributeName, "Unknown Attribute %s.", attribute)
		}
		if attribute == "All" {
			everything = true
		}
		if value, ok := all[attribute]; ok {
			wanted[attribute] = value
		}
	}
	if everything {
		wanted = all
	}
	return &queueAttributes{wanted}, nil
}

func (h *Handler) setQueueAttributes(ctx context.Context, in *setQueueAttributesRequest) error {
	name, err := queueName(in.QueueURL)
	if err != nil {
		return err
	}
	if len(in.Attributes) == 0 {
		return missing("Attributes")
	}
	return h.broker.SetAttributes(ctx, name, in.Attributes)
}

func (h *Handler) listQueueTags(_ context.Context, _ caller, in *queueRequest) (*listQueueTagsResponse, error) {
	name, err := queueName(in.QueueURL)
	if err != nil {
		return nil, err
	}
	tags, err := h.broker.Tags(name)
	return &listQueueTagsResponse{tags}, err
}

func (h *Handler) tagQueue(ctx context.Context, in *tagQueueRequest) error {
	name, err := queueName(in.QueueURL)
	if err != nil {
		return err
	}
	if len(in.Tags) == 0 {
		return missing("Tags")
	}
	return h.broker.SetTags(ctx, name, in.Tags, nil)
}

func (h *Handler) untagQueue(ctx context.Context, in *untagQueueRequest) error {
	name, err := queueName(in.QueueURL)
	if err != nil {
		return err
	}
	if len(in.TagKeys) == 0 {
		return missing("TagKeys")
	}
	return h.broker.SetTags(ctx, name, nil, in.TagKeys)
}
