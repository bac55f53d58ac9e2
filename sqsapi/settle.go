package sqsapi

import (
	"strings"

	"tendril/queue"
)

// maxVisibility is the longest visibility timeout, in seconds.
const maxVisibility = int(queue.MaxVisibility / 1e9)

type deleteMessageRequest struct {
	queueRequest
	ReceiptHandle string
}

type deleteMessageBatchRequest struct {
	queueRequest
	Entries []deleteEntry
}

type deleteEntry struct {
	ID            string `json:"Id"`
	ReceiptHandle string
}

func (e deleteEntry) entryID() string { return e.ID }

// receipt is the receipt handle of a delete.
func (e deleteEntry) receipt() (string, error) {
	if e.ReceiptHandle == "" {
		return "", missing("ReceiptHandle")
	}
	return e.ReceiptHandle, nil
}

type changeMessageVisibilityRequest struct {
	queueRequest
	ReceiptHandle     string
	VisibilityTimeout *int
}

type changeMessageVisibilityBatchRequest struct {
	queueRequest
	Entries []visibilityEntry
}

type visibilityEntry struct {
	ID                string `json:"Id"`
	ReceiptHandle     string
	VisibilityTimeout *int
}

func (e visibilityEntry) entryID() string { return e.ID }

// change checks the parameters of one change.
func (e visibilityEntry) change() (change queue.VisibilityChange, err error) {
	if e.ReceiptHandle == "" {
		return change, missing("ReceiptHandle")
	}
	if e.VisibilityTimeout == nil {
		return change, missing("VisibilityTimeout")
	}
	change.ReceiptHandle = e.ReceiptHandle
	change.Visibility, err = seconds(*e.VisibilityTimeout, "VisibilityTimeout", maxVisibility,
		"VisibilityTimeout must be an integer between 0 and 43200.")
	return change, err
}

func deleteMessage(x *actionCall, in *deleteMessageRequest) (*nothing, error) {
	receipt, err := deleteEntry{ReceiptHandle: in.ReceiptHandle}.receipt()
	if err != nil {
		return nil, err
	}
	return nil, first(x.broker.Queue(x.queue).Delete(x.ctx, []string{receipt}))
}

func deleteMessageBatch(x *actionCall, in *deleteMessageBatchRequest) (*settleResponse, error) {
	return settleBatch(x, in.Entries, "DeleteMessageBatchRequestEntry", deleteEntry.receipt,
		func(receipts []string) []error { return x.broker.Queue(x.queue).Delete(x.ctx, receipts) })
}

func changeMessageVisibility(x *actionCall, in *changeMessageVisibilityRequest) (*nothing, error) {
	change, err := visibilityEntry{ReceiptHandle: in.ReceiptHandle, VisibilityTimeout: in.VisibilityTimeout}.change()
	if err != nil {
		return nil, err
	}
	return nil, first(x.broker.Queue(x.queue).ChangeVisibility(x.ctx, []queue.VisibilityChange{change}))
}

func changeMessageVisibilityBatch(x *actionCall, in *changeMessageVisibilityBatchRequest) (*settleResponse, error) {
	return settleBatch(x, in.Entries, "ChangeMessageVisibilityBatchRequestEntry", visibilityEntry.change,
		func(changes []queue.VisibilityChange) []error {
			return x.broker.Queue(x.queue).ChangeVisibility(x.ctx, changes)
		})
}

// first returns the error of a call for one message.
func first(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

// settleResponse answers both batches.
type settleResponse struct {
	Successful []settledEntry `json:",omitempty"`
	Failed     []failure      `json:",omitempty"`
}

type settledEntry struct {
	ID string `json:"Id"`
}

func (r *settleResponse) messages() int { return len(r.Successful) }

// settleBatch settles the messages of a batch: prepare checks an entry, and settle returns
// one error for each that passed, or nil when all were accepted.
func settleBatch[E entry, S any](x *actionCall, entries []E, kind string, prepare func(E) (S, error),
	settle func([]S) []error) (*settleResponse, error) {
	if err := checkBatch(entries, kind); err != nil {
		return nil, err
	}
	response := &settleResponse{}
	ids := make([]string, 0, len(entries))
	prepared := make([]S, 0, len(entries))
	for _, e := range entries {
		one, err := prepare(e)
		if err != nil {
			response.Failed = append(response.Failed, failed(e.entryID(), err))
			continue
		}
		ids, prepared = append(ids, e.entryID()), append(prepared, one)
	}
	if len(prepared) == 0 {
		return response, x.exists(x.queue)
	}
	errs := settle(prepared)
	if err := wholeCall(errs); err != nil {
		return nil, err
	}
	for i, id := range ids {
		if errs != nil && errs[i] != nil {
			response.Failed = append(response.Failed, failed(id, errs[i]))
			continue
		}
		response.Successful = append(response.Successful, settledEntry{id})
	}
	return response, nil
}

// maxEntryID is the longest id of a batch entry.
const maxEntryID = 80

// entry is an entry of a batch request.
type entry interface{ entryID() string }

// failure is a batch entry that was refused, as both protocols write it.
type failure struct {
	ID          string `json:"Id"`
	SenderFault bool
	Code        string
	Message     string `json:",omitempty"`
}

// checkBatch refuses a batch as a whole. kind is the entry's name in the
// model.
func checkBatch[E entry](entries []E, kind string) error {
	if err := queue.CheckEntries(len(entries), kind); err != nil {
		return err
	}
	for i, e := range entries {
		if id := e.entryID(); id == "" || len(id) > maxEntryID || strings.ContainsFunc(id, isNoIDCharacter) {
			return queue.Errorf(queue.CodeInvalidBatchEntryID,
				"A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most %d "+
					"letters long.", maxEntryID)
		}
		for _, earlier := range entries[:i] {
			if earlier.entryID() == e.entryID() {
				return queue.Errorf(queue.CodeBatchEntryIdsNotDistinct, "Id %s repeated.", e.entryID())
			}
		}
	}
	return nil
}

func isNoIDCharacter(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
}

// failed describes the refusal of one entry. A parameter that a single call
// misses is an invalid value in a batch, with the same text.
func failed(id string, err error) failure {
	refusal := asQueueError(err)
	if refusal == nil {
		refusal = queue.Errorf(codeInternal, "The entry failed inside the server.")
	}
	code := refusal.Code
	if code == queue.CodeMissingRequiredParameter {
		code = queue.CodeInvalidParameterValue
	}
	f := faultOf(code)
	return failure{ID: id, SenderFault: f.sender(), Code: f.query, Message: textOf(refusal)}
}

// wholeCall returns the error that all entries share because it is not about
// any of them (no such queue, storage), nil when there is none.
func wholeCall(errs []error) error {
	for _, err := range errs {
		if err == nil {
			return nil
		}
		refusal := asQueueError(err)
		if refusal != nil && refusal.Code != queue.CodeQueueDoesNotExist && faultOf(refusal.Code).sender() {
			return nil
		}
	}
	return first(errs)
}
