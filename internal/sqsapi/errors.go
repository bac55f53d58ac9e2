package sqsapi

import (
	"net/http"

	"tendril/queue"
)

const (
	codeUnknownOperation = "UnknownOperationException"
	codeSerialization    = "SerializationException"
	codeTooLarge         = "RequestEntityTooLargeException"
	codeEncoding         = "UnsupportedMediaTypeException"
	codeMethodNotAllowed = "MethodNotAllowedException"
	codeInternal         = "InternalFailure"
)

type fault struct {
	// query is the code in the Query protocol. JSON replies contain it in the header x-amzn-query-error and as the
	// Code of failed batch entries.
	query string
	// status is 500 or more if the server is at fault.
	status int
}

func (f fault) sender() bool { return f.status < 500 }

func (f fault) side() string {
	if f.sender() {
		return "Sender"
	}
	return "Receiver"
}

const prefixed = "AWS.SimpleQueueService."

// Clients match on these texts.
const (
	noQueueText      = "The specified queue does not exist."
	noQueueQueryText = "The specified queue does not exist for this wsdl version."
)

func faultOf(code string) fault {
	if f, ok := faults[code]; ok {
		return f
	}
	return fault{query: codeInternal, status: http.StatusInternalServerError}
}

var faults = map[string]fault{
	queue.CodeQueueDoesNotExist:            {prefixed + "NonExistentQueue", 400},
	queue.CodeQueueNameExists:              {"QueueAlreadyExists", 400},
	queue.CodeQueueDeletedRecently:         {prefixed + "QueueDeletedRecently", 400},
	queue.CodePurgeQueueInProgress:         {prefixed + "PurgeQueueInProgress", 403},
	queue.CodeOverLimit:                    {"OverLimit", 403},
	queue.CodeEmptyBatchRequest:            {prefixed + "EmptyBatchRequest", 400},
	queue.CodeTooManyEntriesInBatchRequest: {prefixed + "TooManyEntriesInBatchRequest", 400},
	queue.CodeBatchEntryIdsNotDistinct:     {prefixed + "BatchEntryIdsNotDistinct", 400},
	queue.CodeBatchRequestTooLong:          {prefixed + "BatchRequestTooLong", 400},
	queue.CodeInvalidBatchEntryID:          {prefixed + "InvalidBatchEntryId", 400},
	queue.CodeMessageNotInflight:           {prefixed + "MessageNotInflight", 400},
	queue.CodeUnsupportedOperation:         {prefixed + "UnsupportedOperation", 400},
	queue.CodeReceiptHandleIsInvalid:       {"ReceiptHandleIsInvalid", 400},
	queue.CodeInvalidIDFormat:              {"InvalidIdFormat", 400},
	queue.CodeInvalidMessageContents:       {"InvalidMessageContents", 400},
	queue.CodeInvalidAttributeName:         {"InvalidAttributeName", 400},
	queue.CodeInvalidAttributeValue:        {"InvalidAttributeValue", 400},
	queue.CodeInvalidAddress:               {"InvalidAddress", 404},
	queue.CodeInvalidSecurity:              {"InvalidSecurity", 403},
	queue.CodeRequestThrottled:             {"RequestThrottled", 403},
	queue.CodeResourceNotFound:             {"ResourceNotFoundException", 404},
	queue.CodeInvalidParameterValue:        {"InvalidParameterValue", 400},
	queue.CodeMissingRequiredParameter:     {"MissingParameter", 400},

	"KmsAccessDenied":    {"KMS.AccessDeniedException", 400},
	"KmsDisabled":        {"KMS.DisabledException", 400},
	"KmsInvalidKeyUsage": {"KMS.InvalidKeyUsageException", 400},
	"KmsInvalidState":    {"KMS.InvalidStateException", 400},
	"KmsNotFound":        {"KMS.NotFoundException", 400},
	"KmsOptInRequired":   {"KMS.OptInRequired", 403},
	"KmsThrottled":       {"KMS.ThrottlingException", 400},

	// These codes are not in Amazon's model. A full disk is reported as 507, because SDKs retry after 503.
	queue.CodeAccessDenied:          {"AccessDenied", 403},
	queue.CodeSignatureDoesNotMatch: {"SignatureDoesNotMatch", 403},
	queue.CodeUnreachable:           {"ServiceUnavailable", 503},
	queue.CodeStorageFull:           {"StorageFull", 507},
	queue.CodeStorageFailed:         {"ServiceUnavailable", 503},
	queue.CodeClosed:                {"ServiceUnavailable", 503},
	queue.CodeStaleTerm:             {"StaleTerm", 409},

	codeUnknownOperation: {"InvalidAction", 400},
	codeSerialization:    {"MalformedInput", 400},
	codeTooLarge:         {"RequestEntityTooLarge", 413},
	codeEncoding:         {"UnsupportedMediaType", 415},
	codeMethodNotAllowed: {"MethodNotAllowed", 405},
	codeInternal:         {codeInternal, 500},
}

func textOf(e *queue.Error) string {
	if e.Code == queue.CodeQueueDoesNotExist {
		return noQueueText
	}
	return e.Error()
}

func queryTextOf(e *queue.Error) string {
	if e.Code == queue.CodeQueueDoesNotExist {
		return noQueueQueryText
	}
	return textOf(e)
}

func missing(parameter string) *queue.Error {
	return queue.Errorf(queue.CodeMissingRequiredParameter, "The request must contain the parameter %s.", parameter)
}

func invalid(value any, parameter, reason string) *queue.Error {
	return queue.Errorf(queue.CodeInvalidParameterValue, "Value %v for parameter %s is invalid. Reason: %s", value,
		parameter, reason)
}
