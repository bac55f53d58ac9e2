package queue

import (
	"errors"
	"fmt"
)

// Error is the error of a queue that rejected a request. Code is the name of the
// error in the SQS JSON protocol, or one of tendril's own codes below.
type Error struct {
	// Code is one of the Code constants.
	Code string
	// Message is a sentence for people; may be "".
	Message string
	// Err is the cause; may be nil.
	Err error
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
	// CodeUnreachable: the queue did not answer.
	CodeUnreachable = "Unreachable"
	// CodeStorageFull: the disk of the embedded queue has no space left for sends;
	// receives and deletes still work.
	CodeStorageFull = "StorageFull"
	// CodeStorageFailed: a write to the disk failed; nothing is accepted until the
	// store has been reopened and verified.
	CodeStorageFailed = "StorageFailed"
	// CodeClosed: this process has closed the queue.
	CodeClosed = "Closed"
)

// Sentinels for errors.Is. They compare by code alone.
var (
	ErrNoQueue     = &Error{Code: CodeQueueDoesNotExist}
	ErrThrottled   = &Error{Code: CodeRequestThrottled}
	ErrDenied      = &Error{Code: CodeAccessDenied}
	ErrUnreachable = &Error{Code: CodeUnreachable}
	ErrClosed      = &Error{Code: CodeClosed}
)
