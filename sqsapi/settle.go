package sqsapi

import (
	"context"

	"tendril/queue"
)

// maxVisibility is the longest visibility timeout, in seconds.
const maxVisibility = int(queue.MaxVisibility / 1e9)

type deleteMessageRequest struct {
	QueueURL      string `json:"QueueUrl"`
	ReceiptHandle string
}

type deleteMessageBatchRequest struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []deleteEntry
}

type deleteEntry struct {
	ID            string `json:"Id"`
	ReceiptHandle string
}

func (e deleteEntry) entryID() string { return e.ID }

type changeMessageVisibilityRequest struct {
	QueueURL          string `json:"QueueUrl"`
	ReceiptHandle     string
	VisibilityTimeout *int
}

type changeMessageVisibilityBatchRequest struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []visibilityEntry
}

type visibilityEntry struct {
	ID                string `json:"Id"`
	ReceiptHandle     string
	VisibilityTimeout *int
}

func (e visibilityEntry) entryID() string { return e.ID }

// settleResponse answers both batches.
type settleResponse struct {
	Successful []settledEntry `json:",omitempty"`
	Failed     []failure      `json:",omitempty"`
}

type settledEntry struct {
	ID string `json:"Id"`
}

func (r *settleResponse) messages() int { return len(r.Successful) }

func (h *Handler) deleteMessage(ctx context.Context, in *deleteMessageRequest) error {
	name, err := queueName(in.QueueURL)
	if err != nil {
		return err
	}
	if in.ReceiptHandle == "" {
		return missing("ReceiptHandle")
	}
	return first(h.broker.Delete(ctx, name, []string{in.ReceiptHandle}))
}

func (h *Handler) deleteMessageBatch(ctx context.Context, _ caller, in *deleteMessageBatchRequest) (*settleResponse,
	error) {
	name, err := queueName(in.QueueURL)
	if err != nil {
		return nil, err
	}
	if err := checkBatch(in.Entries, "DeleteMessageBatchRequestEntry"); err != nil {
		return nil, err
	}
	response := &settleResponse{}
	ids := make([]string, 0, len(in.Entries))
	handles := make([]string, 0, len(in.Entries))
	for _, e := range in.Entries {
		if e.ReceiptHandle == "" {
			response.Failed = append(response.Failed, failed(e.ID, missing("ReceiptHandle")))
			continue
		}
		ids, handles = append(ids, e.ID), append(handles, e.ReceiptHandle)
	}
	if len(handles) == 0 {
		return response, h.exists(name)
	}
	return response.settle(ids, h.broker.Delete(ctx, name, handles))
}

func (h *Handler) changeMessageVisibility(ctx context.Context, in *changeMessageVisibilityRequest) error {
	name, err := queueName(in.QueueURL)
	if err != nil {
		return err
	}
	change, err := visibilityChange(in.ReceiptHandle, in.VisibilityTimeout)
	if err != nil {
		return err
	}
	return first(h.broker.ChangeVisibility(ctx, name, []queue.VisibilityChange{change}))
}

func (h *Handler) changeMessageVisibilityBatch(ctx context.Context, _ caller,
	in *changeMessageVisibilityBatchRequest) (*settleResponse, error) {
	name, err := queueName(in.QueueURL)
	if err != nil {
		return nil, err
	}
	if err := checkBatch(in.Entries, "ChangeMessageVisibilityBatchRequestEntry"); err != nil {
		return nil, err
	}
	response := &settleResponse{}
	ids := make([]string, 0, len(in.Entries))
	changes := make([]queue.VisibilityChange, 0, len(in.Entries))
	for _, e := range in.Entries {
		change, err := visibilityChange(e.ReceiptHandle, e.VisibilityTimeout)
		if err != nil {
			response.Failed = append(response.Failed, failed(e.ID, err))
			continue
		}
		ids, changes = append(ids, e.ID), append(changes, change)
	}
	if len(changes) == 0 {
		return response, h.exists(name)
	}
	return response.settle(ids, h.broker.ChangeVisibility(ctx, name, changes))
}

// visibilityChange checks the parameters of one change.
func visibilityChange(handle string, timeout *int) (queue.VisibilityChange, error) {
	change := queue.VisibilityChange{ReceiptHandle: handle}
	if handle == "" {
		return change, missing("ReceiptHandle")
	}
	if timeout == nil {
		return change, missing("VisibilityTimeout")
	}
	var err error
	change.Visibility, err = seconds(*timeout, "VisibilityTimeout", maxVisibility,
		"VisibilityTimeout must be an integer between 0 and 43200.")
	return change, err
}

// settle sorts the queue's answers for the entries ids into accepted and
// refused; errs is nil when all were accepted.
func (r *settleResponse) settle(ids []string, errs []error) (*settleResponse, error) {
	if err := wholeCall(errs); err != nil {
		return nil, err
	}
	for i, id := range ids {
		if errs != nil && errs[i] != nil {
			r.Failed = append(r.Failed, failed(id, errs[i]))
			continue
		}
		r.Successful = append(r.Successful, settledEntry{id})
	}
	return r, nil
}

// first returns the error of a call for one message.
func first(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}
