package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"tendril/queue"
)

// refusal is an error response, to which the SDK's retry rules apply.
type refusal struct {
	status         int
	shape, message string
	query          string // the code in the query protocol
	// skew is the service's time minus the local time, valid if dated.
	dated bool
	skew  time.Duration
}

func (r *refusal) Error() string {
	return cmp.Or(r.message, r.ErrorCode(),
		fmt.Sprintf("HTTP status %d %s without an explanation", r.status, http.StatusText(r.status)))
}

// isForeign reports whether a proxy, or a server with another protocol, responded.
func (r *refusal) isForeign() bool {
	switch r.ErrorCode() {
	case "":
		return r.message == ""
	case "UnknownOperationException", "UnknownOperation", "InvalidAction", queue.CodeInvalidAddress:
		return true
	}
	return false
}

func (r *refusal) mayBeClockSkew() bool {
	codes := []string{"InvalidSignatureException", "SignatureDoesNotMatch", "AuthFailure", "RequestTimeTooSkewed",
		"RequestExpired", "AccessDeniedException"}
	return slices.Contains(codes, r.shape) || slices.Contains(codes, r.query)
}

func (r *refusal) foreignMessage(host, name, variable string) string {
	return fmt.Sprintf("%s does not respond like %s (%s): check %s and any proxy in between", host, name, r,
		variable)
}

func (r *refusal) ErrorCode() string { return cmp.Or(r.shape, r.query) }

func (r *refusal) HTTPStatusCode() int { return r.status }

func (r *refusal) queueCode() string {
	for _, name := range []string{r.shape, r.query} {
		if code, ok := knownCode(name); ok {
			return code
		}
	}

	switch {
	case r.status == http.StatusTooManyRequests:
		return queue.CodeRequestThrottled
	case r.status >= 500:
		return queue.CodeUnreachable
	case r.ErrorCode() != "":
		return r.ErrorCode()
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden:
		return queue.CodeAccessDenied
	}
	return queue.CodeUnreachable
}

func knownCode(code string) (string, bool) {
	switch short := strings.TrimPrefix(code, "AWS.SimpleQueueService."); short {
	case "NonExistentQueue", queue.CodeQueueDoesNotExist:
		return queue.CodeQueueDoesNotExist, true
	case "QueueAlreadyExists", queue.CodeQueueNameExists:
		return queue.CodeQueueNameExists, true
	case "InvalidParameterValue", queue.CodeInvalidParameterValue:
		return queue.CodeInvalidParameterValue, true
	case "MissingParameter", queue.CodeMissingRequiredParameter:
		return queue.CodeMissingRequiredParameter, true
	case queue.CodeQueueDeletedRecently, queue.CodePurgeQueueInProgress, queue.CodeOverLimit,
		queue.CodeEmptyBatchRequest, queue.CodeTooManyEntriesInBatchRequest, queue.CodeBatchEntryIdsNotDistinct,
		queue.CodeBatchRequestTooLong, queue.CodeInvalidBatchEntryID, queue.CodeMessageNotInflight,
		queue.CodeUnsupportedOperation, queue.CodeReceiptHandleIsInvalid, queue.CodeInvalidIDFormat,
		queue.CodeInvalidMessageContents, queue.CodeInvalidAttributeName, queue.CodeInvalidAttributeValue,
		queue.CodeInvalidAddress, queue.CodeInvalidSecurity, queue.CodeResourceNotFound:
		return short, true
	case "AccessDenied", "AccessDeniedException", "InvalidClientTokenId", "UnrecognizedClientException",
		"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSignatureException", "IncompleteSignature",
		"MissingAuthenticationToken", "MissingAuthenticationTokenException", "ExpiredToken", "ExpiredTokenException",
		"RequestExpired", "RequestTimeTooSkewed", "OptInRequired", "NotAuthorized", "AuthFailure",
		"KmsAccessDenied", "KMS.AccessDeniedException", "KmsOptInRequired", "KMS.OptInRequired":
		return queue.CodeAccessDenied, true
	case queue.CodeRequestThrottled, "RequestThrottledException", "Throttling", "ThrottlingException",
		"ThrottledException", "RequestLimitExceeded", "TooManyRequestsException", "SlowDown",
		"KmsThrottled", "KMS.ThrottlingException":
		return queue.CodeRequestThrottled, true
	case "InternalError", "InternalFailure", "ServiceUnavailable", "ServiceUnavailableException", "RequestTimeout":
		return queue.CodeUnreachable, true
	}
	return "", false
}

func entryError(code, message string, senderFault bool) error {
	known, ok := knownCode(code)
	if !ok {
		known = code
		if !senderFault || code == "" {
			known = queue.CodeUnreachable
		}
	}
	return &queue.Error{Code: known, Message: cmp.Or(message, code)}
}

func refusalIn(err error) *refusal {
	var own *refusal
	if errors.As(err, &own) {
		return own
	}

	r := &refusal{}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		r.status = response.HTTPStatusCode()
	}
	var api smithy.APIError
	switch {
	case errors.As(err, &api):
		r.shape, r.message = withoutNamespace(api.ErrorCode()), firstLine(api.ErrorMessage())
		r.clearPlaceholders()
	case r.status == 0:
		return nil
	}
	return r
}

// ElasticMQ sends names such as com.amazonaws.sqs#OverLimit in the header for query codes, which the SDK does not
// shorten.
func withoutNamespace(shape string) string { return shape[strings.LastIndexByte(shape, '#')+1:] }

// clearPlaceholders removes texts that the SDK or a server substitutes for missing ones.
func (r *refusal) clearPlaceholders() {
	const unknown = "UnknownError"
	text := http.StatusText(r.status)
	if r.message == unknown {
		r.message = ""
	}
	if r.shape == unknown && r.message == "" ||
		text != "" && r.message == text && r.shape == strings.ReplaceAll(text, " ", "") {
		r.shape, r.message = "", ""
	}
}

func unwrapSDK(err error) error {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	var network *net.OpError
	if errors.As(err, &network) {
		return network
	}

	var sent *smithyhttp.RequestSendError
	if errors.As(err, &sent) {
		return sent.Err
	}
	return err
}

// undelivered returns errors of types that the SDK's retry rules recognize.
func undelivered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &sdk.RequestCanceledError{Err: ctx.Err()}
	}
	return &smithyhttp.RequestSendError{Err: err}
}
