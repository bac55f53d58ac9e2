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

// refusal is an error answer of the service. It has the methods by which the
// SDK's retry rules know what kind of error they see.
type refusal struct {
	status         int
	shape, message string
	query          string
	// skew is the service's time minus ours; dated tells whether it is known.
	dated bool
	skew  time.Duration
}

// Error returns the service's sentence, or the status where it sent none.
func (r *refusal) Error() string {
	return cmp.Or(r.message, r.ErrorCode(),
		fmt.Sprintf("HTTP status %d %s without an explanation", r.status, http.StatusText(r.status)))
}

// foreign reports whether the answer is not an error of the service that was asked: that of
// a proxy, or of a server that knows another protocol.
func (r *refusal) foreign() bool {
	switch r.ErrorCode() {
	case "":
		return r.message == ""
	case "UnknownOperationException", "UnknownOperation", "InvalidAction", queue.CodeInvalidAddress:
		return true
	}
	return false
}

// mayBeTime reports whether the refusal can be about the time of the request.
// No code is only about that.
func (r *refusal) mayBeTime() bool {
	about := []string{"InvalidSignatureException", "SignatureDoesNotMatch", "AuthFailure", "RequestTimeTooSkewed",
		"RequestExpired", "AccessDeniedException"}
	return slices.Contains(about, r.shape) || slices.Contains(about, r.query)
}

// foreignAnswer says of a foreign answer from host what to look at.
func (r *refusal) foreignAnswer(host, name, variable string) string {
	return fmt.Sprintf("%s does not answer as %s does (%s): check %s, and any proxy in between", host, name, r,
		variable)
}

// ErrorCode returns the shape's name, or the query code where there is none.
func (r *refusal) ErrorCode() string { return cmp.Or(r.shape, r.query) }

// HTTPStatusCode returns the status of the answer.
func (r *refusal) HTTPStatusCode() int { return r.status }

// code names the kind of refusal: first by the shape, then by the code of the
// older protocol, then by the HTTP status.
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
	case r.shape != "" || r.query != "":
		return r.ErrorCode()
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden:
		return queue.CodeAccessDenied
	}
	return queue.CodeUnreachable
}

// knownCode returns the code of package queue for one that SQS or AWS uses;
// false for one that has no special meaning here.
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

// entryError is the error of one entry of a batch. theirs tells that the
// service took the blame.
func entryError(code, message string, theirs bool) error {
	known, ok := knownCode(code)
	switch {
	case ok:
	case theirs || code == "":
		known = queue.CodeUnreachable
	default:
		known = code
	}
	return &queue.Error{Code: known, Message: cmp.Or(message, code)}
}

// refusalIn finds what the service said in an error of ours or of the SDK's
// client; nil when there was no answer at all.
func refusalIn(err error) *refusal {
	var own *refusal
	if errors.As(err, &own) {
		return own
	}

	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.HTTPStatusCode() != 0 {
		own = &refusal{status: response.HTTPStatusCode()}
	}

	var api smithy.APIError
	if errors.As(err, &api) {
		if own == nil {
			own = &refusal{}
		}
		own.shape, own.message = withoutNamespace(api.ErrorCode()), firstLine(api.ErrorMessage())
		if own.madeUp() {
			own.shape, own.message = "", ""
		} else if own.message == "UnknownError" { // the SDK's word for none; the shape says more
			own.message = ""
		}
	}
	return own
}

// withoutNamespace returns a shape's name without what stands before it: com.amazonaws.sqs#OverLimit is OverLimit.
// Amazon sends the long name in the body alone; ElasticMQ sends it in the header of the older protocol's code too, and
// there the SDK leaves it as it is.
func withoutNamespace(shape string) string { return shape[strings.LastIndexByte(shape, '#')+1:] }

// madeUp reports whether the words are the SDK's client's own, for an answer that it did
// not understand.
func (r *refusal) madeUp() bool {
	text := http.StatusText(r.status)
	return r.shape == "UnknownError" && (r.message == "" || r.message == r.shape) ||
		text != "" && r.message == text && r.shape == strings.ReplaceAll(text, " ", "")
}

// plain takes the wrapping of the SDK and of net/http off an error, for people.
func plain(err error) error {
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

// undelivered wraps an error of the transport in the SDK's own words for it,
// which its retry rules understand.
func undelivered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &sdk.RequestCanceledError{Err: ctx.Err()}
	}
	return &smithyhttp.RequestSendError{Err: err}
}
