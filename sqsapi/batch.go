package sqsapi

import (
	"tendril/queue"
)

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
	if len(entries) == 0 {
		return queue.Errorf(queue.CodeEmptyBatchRequest, "There should be at least one %s in the request.", kind)
	}
	if len(entries) > queue.MaxBatch {
		return queue.Errorf(queue.CodeTooManyEntriesInBatchRequest,
			"Maximum number of entries per request are %d. You have sent %d.", queue.MaxBatch, len(entries))
	}
	for i, e := range entries {
		if !validEntryID(e.entryID()) {
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

func validEntryID(id string) bool {
	if id == "" || len(id) > maxEntryID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
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
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}
