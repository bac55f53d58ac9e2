package sqsapi

import (
	"cmp"
	"strings"

	"tendril/queue"
)

// maxVisibility is in seconds.
const maxVisibility = int(queue.MaxVisibility / 1e9)

type deleteMessageRequest struct {
	queueRequest
	deleteEntry
}

type deleteMessageBatchRequest struct {
	queueRequest
	Entries []deleteEntry `query:"*RequestEntry"`
}

type deleteEntry struct {
	ID            string `json:"Id"` // only in batches
	ReceiptHandle string
}

func (e *deleteEntry) entryID() string { return e.ID }

func (e *deleteEntry) prepare() (string, settledEntry, error) {
	if e.ReceiptHandle == "" {
		return "", settledEntry{}, missing("ReceiptHandle")
	}
	return e.ReceiptHandle, settledEntry{e.ID}, nil
}

type changeMessageVisibilityRequest struct {
	queueRequest
	visibilityEntry
}

type changeMessageVisibilityBatchRequest struct {
	queueRequest
	Entries []visibilityEntry `query:"*RequestEntry"`
}

type visibilityEntry struct {
	ID                string `json:"Id"` // only in batches
	ReceiptHandle     string
	VisibilityTimeout *int
}

func (e *visibilityEntry) entryID() string { return e.ID }

func (e *visibilityEntry) prepare() (change queue.VisibilityChange, answer settledEntry, err error) {
	if e.ReceiptHandle == "" {
		return change, answer, missing("ReceiptHandle")
	}
	if e.VisibilityTimeout == nil {
		return change, answer, missing("VisibilityTimeout")
	}
	visibility, err := seconds(e.VisibilityTimeout, "VisibilityTimeout", maxVisibility,
		"VisibilityTimeout must be an integer between 0 and 43200.")
	if err != nil {
		return change, answer, err
	}
	return queue.VisibilityChange{ReceiptHandle: e.ReceiptHandle, Visibility: *visibility}, settledEntry{e.ID}, nil
}

func deleteMessage(x *exchange, in *deleteMessageRequest) (*nothing, error) {
	receipt, _, err := in.prepare()
	if err != nil {
		return nil, err
	}
	return nil, cmp.Or(x.broker.Queue(x.queue).Delete(x.ctx, []string{receipt})...)
}

func deleteMessageBatch(x *exchange, in *deleteMessageBatchRequest) (*batchResponse[settledEntry], error) {
	if err := checkBatch(in.Entries, "DeleteMessageBatchRequestEntry"); err != nil {
		return nil, err
	}
	return runBatch(x, in.Entries, (*deleteEntry).prepare, func(receipts []string, _ []settledEntry) ([]error, error) {
		return unlessAllFailed(x.broker.Queue(x.queue).Delete(x.ctx, receipts))
	})
}

func changeMessageVisibility(x *exchange, in *changeMessageVisibilityRequest) (*nothing, error) {
	change, _, err := in.prepare()
	if err != nil {
		return nil, err
	}
	return nil, cmp.Or(x.broker.Queue(x.queue).ChangeVisibility(x.ctx, []queue.VisibilityChange{change})...)
}

func changeMessageVisibilityBatch(x *exchange,
	in *changeMessageVisibilityBatchRequest) (*batchResponse[settledEntry], error) {
	if err := checkBatch(in.Entries, "ChangeMessageVisibilityBatchRequestEntry"); err != nil {
		return nil, err
	}
	return runBatch(x, in.Entries, (*visibilityEntry).prepare,
		func(changes []queue.VisibilityChange, _ []settledEntry) ([]error, error) {
			return unlessAllFailed(x.broker.Queue(x.queue).ChangeVisibility(x.ctx, changes))
		})
}

type settledEntry struct {
	ID string `json:"Id"`
}

type batchResponse[Answer any] struct {
	Successful []Answer  `json:",omitempty" query:"*ResultEntry"`
	Failed     []failure `json:",omitempty" query:"BatchResultErrorEntry"`
}

// runBatch validates each entry with prepare, which returns a job and the answer if the job succeeds. It then passes
// all jobs to call, which returns one error per job (nil if all succeeded), or an error for the whole request.
func runBatch[Entry, Job, Answer any, E entry[Entry]](x *exchange, entries []Entry,
	prepare func(E) (Job, Answer, error), call func([]Job, []Answer) ([]error, error)) (*batchResponse[Answer], error) {
	response := &batchResponse[Answer]{}
	ids := make([]string, 0, len(entries))
	jobs := make([]Job, 0, len(entries))
	answers := make([]Answer, 0, len(entries))
	for i := range entries {
		e := E(&entries[i])
		job, answer, err := prepare(e)
		if err != nil {
			response.Failed = append(response.Failed, failureOf(e.entryID(), err))
			continue
		}
		ids = append(ids, e.entryID())
		jobs = append(jobs, job)
		answers = append(answers, answer)
	}

	if len(jobs) == 0 {
		return response, x.checkExists(x.queue)
	}
	errs, err := call(jobs, answers)
	if refusal := asQueueError(err); refusal != nil {
		return nil, inBatch(refusal)
	}
	if err != nil {
		return nil, err
	}

	response.Successful = answers[:0]
	for i, id := range ids {
		if errs != nil && errs[i] != nil {
			response.Failed = append(response.Failed, failureOf(id, errs[i]))
		} else {
			response.Successful = append(response.Successful, answers[i])
		}
	}
	return response, nil
}

const maxEntryID = 80

type entry[Entry any] interface {
	*Entry
	entryID() string
}

type failure struct {
	ID          string `json:"Id"`
	SenderFault bool
	Code        string
	Message     string `json:",omitempty"`
}

// checkBatch checks the number of entries and their IDs. kind is the entry type's name in the SQS model, such as
// SendMessageBatchRequestEntry.
func checkBatch[Entry any, E entry[Entry]](entries []Entry, kind string) error {
	if err := queue.CheckEntries(len(entries), kind); err != nil {
		return err
	}

	for i := range entries {
		id := E(&entries[i]).entryID()
		if id == "" || len(id) > maxEntryID || strings.ContainsFunc(id, notInEntryID) {
			return queue.Errorf(queue.CodeInvalidBatchEntryID,
				"A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most %d "+
					"letters long.", maxEntryID)
		}
		for before := range i {
			if E(&entries[before]).entryID() == id {
				return queue.Errorf(queue.CodeBatchEntryIdsNotDistinct, "Id %s repeated.", id)
			}
		}
	}
	return nil
}

func notInEntryID(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
}

// inBatch converts a single message's error for a batch entry, which reports a missing parameter as an invalid value.
func inBatch(refusal *queue.Error) *queue.Error {
	if refusal.Code == queue.CodeMissingRequiredParameter {
		return queue.Errorf(queue.CodeInvalidParameterValue, "%s", refusal.Message)
	}
	return refusal
}

func failureOf(id string, err error) failure {
	refusal := inBatch(cmp.Or(asQueueError(err), queue.Errorf(codeInternal, "The entry failed in the server.")))
	f := faultOf(refusal.Code)
	return failure{ID: id, SenderFault: f.sender(), Code: f.query, Message: textOf(refusal)}
}

// unlessAllFailed also returns an error if every entry failed for a reason outside it, such as a missing queue or a
// storage failure.
func unlessAllFailed(errs []error) ([]error, error) {
	for _, err := range errs {
		if err == nil || concernsEntry(err) {
			return errs, nil
		}
	}
	return errs, cmp.Or(errs...)
}

func concernsEntry(err error) bool {
	refusal := asQueueError(err)
	return refusal != nil && refusal.Code != queue.CodeQueueDoesNotExist && faultOf(refusal.Code).sender()
}
