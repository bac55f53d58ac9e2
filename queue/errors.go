package queue

import (
	"errors"
	"fmt"
)

// Error is the error of a queue that rejected a request. Code is the name of the
// error in the SQS JSON protocol, or one of tendril's own codes below.
type Error struct {
	Code    string // one of the Code constants
	Message string // a sentence for people; may be ""
	Err     error  // the cause; may be nil
}

// Errorf returns an [Error] with a formatted message. A %w verb sets the cause.
func Errorf(code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Error returns the message, or the code when there is no message.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an [Error] with the same code, so that
// errors.Is(err, queue.ErrNoQueue) checks the kind of error.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Error codes with the names of the SQS JSON protocol. The last two are not in
// Amazon's model; their codes in the query protocol are InvalidParameterValue and
// MissingParameter.
const (
	CodeQueueDoesNotExist            = "QueueDoesNotExist"
	CodeQueueNameExists              = "QueueNameExists"
	CodeQueueDeletedRecently         = "QueueDeletedRecently"
	CodePurgeQueueInProgress         = "PurgeQueueInProgress"
	CodeOverLimit                    = "OverLimit"
	CodeEmptyBatchRequest            = "EmptyBatchRequest"
	CodeTooManyEntriesInBatchRequest = "TooManyEntriesInBatchRequest"
	CodeBatchEntryIdsNotDistinct     = "BatchEntryIdsNotDistinct"
	CodeBatchRequestTooLong          = "BatchRequestTooLong"
	CodeInvalidBatchEntryID          = "InvalidBatchEntryId"
	CodeMessageNotInflight           = "MessageNotInflight"
	CodeUnsupportedOperation         = "UnsupportedOperation"
	CodeReceiptHandleIsInvalid       = "ReceiptHandleIsInvalid"
	CodeInvalidIDFormat              = "InvalidIdFormat"
	CodeInvalidMessageContents       = "InvalidMessageContents"
	CodeInvalidAttributeName         = "InvalidAttributeName"
	CodeInvalidAttributeValue        = "InvalidAttributeValue"
	CodeInvalidAddress               = "InvalidAddress"
	CodeInvalidSecurity              = "InvalidSecurity"
	CodeRequestThrottled             = "RequestThrottled"
	CodeResourceNotFound             = "ResourceNotFoundException"
	CodeInvalidParameterValue        = "InvalidParameterValueException"
	CodeMissingRequiredParameter     = "MissingRequiredParameterException"
)

// Error codes of tendril that the SQS model does not have.
const (
	// CodeAccessDenied: the credentials are missing or do not allow the request.
	CodeAccessDenied = "AccessDenied"
	// CodeSignatureDoesNotMatch: the request is not signed with credentials that are valid.
	CodeSignatureDoesNotMatch = "SignatureDoesNotMatch"
	// CodeUnreachable: the queue did not answer.
	CodeUnreachable = "Unreachable"
	// CodeStorageFull: the disk of the embedded queue has no space left for sends;
	// receives and deletes still work.
	CodeStorageFull = "StorageFull"
	// CodeStorageFailed: a write to the disk failed; nothing is accepted until the
	// store could be opened again and written.
	CodeStorageFailed = "StorageFailed"
	// CodeClosed: this process has closed the queue.
	CodeClosed = "Closed"
	// CodeStaleTerm: the write came from an instance that is no longer the leader.
	CodeStaleTerm = "StaleTerm"
)

// Sentinels for errors.Is. They compare by code alone.
var (
	ErrNoQueue     = &Error{Code: CodeQueueDoesNotExist}
	ErrThrottled   = &Error{Code: CodeRequestThrottled}
	ErrDenied      = &Error{Code: CodeAccessDenied}
	ErrUnreachable = &Error{Code: CodeUnreachable}
	ErrClosed      = &Error{Code: CodeClosed}
	ErrStaleTerm   = &Error{Code: CodeStaleTerm}
)

// MaxBatch is the maximum number of entries in one request (SQS: 10).
const MaxBatch = 10

// MaxMessageSize is the most that a message, and all messages of a batch together, may
// contain in bytes: bodies, and names, types and values of attributes (SQS: 1 MiB).
const MaxMessageSize = 1 << 20

// CheckEntries rejects a batch request without entries, and one with too many. kind is the
// name of an entry in the model of SQS.
func CheckEntries(n int, kind string) error {
	if n == 0 {
		return Errorf(CodeEmptyBatchRequest, "There should be at least one %s in the request.", kind)
	}
	if n > MaxBatch {
		return Errorf(CodeTooManyEntriesInBatchRequest,
			"Maximum number of entries per request are %d. You have sent %d.", MaxBatch, n)
	}
	return nil
}

// CheckBatchSize rejects a batch whose messages together are too large.
func CheckBatchSize(bytes int) error {
	if bytes > MaxMessageSize {
		return Errorf(CodeBatchRequestTooLong, "Batch requests cannot be longer than %d bytes. You have sent %d bytes.",
			MaxMessageSize, bytes)
	}
	return nil
}
