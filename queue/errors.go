package queue

import (
	"errors"
	"fmt"
)

// Error is a queue's refusal. Code is the name of the error's shape in the
// SQS JSON protocol, or one of tendril's own codes below.
type Error struct {
	// Code is one of the Code constants.
	Code string
	// Message is the sentence for people; "" says no more than Code.
	Message string
	// Err is the cause; may be nil.
	Err error
}

// Errorf returns an [Error] with a formatted message. A %w verb sets the cause.
func Errorf(code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Error returns the message, or the code where there is none.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an [Error] of the same code, so that
// errors.Is(err, queue.ErrNoQueue) asks for the kind of refusal.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// The codes of refusals, as the SQS JSON protocol names them. The last two of
// this group are not in Amazon's model; their query codes are
// InvalidParameterValue and MissingParameter.
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

// Codes of tendril's own, for what has no shape in the SQS model.
const (
	// CodeAccessDenied: the credentials may not do this, or there are none.
	CodeAccessDenied = "AccessDenied"
	// CodeUnreachable: the queue did not answer.
	CodeUnreachable = "Unreachable"
	// CodeStorageFull: the disk that holds the embedded queue has no room for
	// sends; receives and deletes still work.
	CodeStorageFull = "StorageFull"
	// CodeStorageFailed: the disk refused a write; nothing is accepted until
	// the store was reopened and verified.
	CodeStorageFailed = "StorageFailed"
	// CodeClosed: the queue was closed by its own process.
	CodeClosed = "Closed"
)

// Sentinels for errors.Is. They compare by code alone.
var (
	ErrNoQueue        = &Error{Code: CodeQueueDoesNotExist}
	ErrReceiptInvalid = &Error{Code: CodeReceiptHandleIsInvalid}
	ErrNotInFlight    = &Error{Code: CodeMessageNotInflight}
	ErrOverLimit      = &Error{Code: CodeOverLimit}
	ErrThrottled      = &Error{Code: CodeRequestThrottled}
	ErrDenied         = &Error{Code: CodeAccessDenied}
	ErrUnreachable    = &Error{Code: CodeUnreachable}
	ErrStorageFull    = &Error{Code: CodeStorageFull}
	ErrClosed         = &Error{Code: CodeClosed}
)
