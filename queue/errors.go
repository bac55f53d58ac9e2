package queue

import (
	"errors"
	"fmt"
)

// Error is a queue's rejection of a request. Code is an SQS JSON protocol error name or one of tendril's own codes.
type Error struct {
	Code    string
	Message string // may be ""
	Err     error  // may be nil
}

// Errorf returns an [Error] with a formatted message. A %w verb sets its cause.
func Errorf(code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Error returns the message, or the code if there is no message.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Message
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target has the same code, for errors.Is(err, queue.ErrNoQueue).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Error codes of the SQS JSON protocol. The last two are not in the SQS model; the Query protocol returns them as
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

// Error codes specific to tendril.
const (
	// CodeAccessDenied means that credentials are missing or do not permit the request.
	CodeAccessDenied = "AccessDenied"
	// CodeSignatureDoesNotMatch means that the request is not signed with valid credentials.
	CodeSignatureDoesNotMatch = "SignatureDoesNotMatch"
	// CodeUnreachable means that the queue did not respond.
	CodeUnreachable = "Unreachable"
	// CodeStorageFull means that the embedded queue's disk is too full for sends. Receives and deletes still work.
	CodeStorageFull = "StorageFull"
	// CodeStorageFailed means that the embedded queue cannot read or write its files, or has lost its data
	// directory.
	CodeStorageFailed = "StorageFailed"
	// CodeClosed means that this process closed the queue.
	CodeClosed = "Closed"
	// CodeStaleTerm means that the writing instance is no longer the leader.
	CodeStaleTerm = "StaleTerm"
)

// Errors for use with [errors.Is].
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

// MaxMessageSize is the maximum size in bytes of a message or batch (SQS: 1 MiB): bodies and the names, types and
// values of attributes.
const MaxMessageSize = 1 << 20

// CheckEntries returns an error unless a batch has 1 to [MaxBatch] entries. kind is the entry type's name in the SQS
// model, such as SendMessageBatchRequestEntry.
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

// CheckBatchSize returns an error if a batch exceeds [MaxMessageSize].
func CheckBatchSize(bytes int) error {
	if bytes > MaxMessageSize {
		return Errorf(CodeBatchRequestTooLong, "Batch requests cannot be longer than %d bytes. You have sent %d bytes.",
			MaxMessageSize, bytes)
	}
	return nil
}
