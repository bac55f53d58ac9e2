package deliver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tendril/queue"
)

// judgeCall returns the results of a call:
//
//	nothing was sent                    unreached
//	no complete response                failed: the function may have run
//	200 with a function error           failed
//	200                                 done, or failed as reported in the reply
//	429, 5xx except 504, not ready      throttled: the function did not run
//	401, 403, 404, redirect, invalid
//	credentials or configuration        unreached
//	413, any other status               failed
func judgeCall(ctx context.Context, a *queue.Invocation, err error, ids []string) []queue.Result {
	all := queue.Result{Outcome: queue.Done, Status: a.Status}
	var failed map[string]bool
	switch {
	case err != nil:
		all = callFailed(ctx, err)
	case a.Status != http.StatusOK:
		all = callRefused(a)
	case a.FunctionError != "":
		all = failedReply(a, functionError(a))
		all.Fault = true
	default:
		reply := readReply(a.Payload, ids)
		failed = reply.failed
		all.Reason = reply.note
		if reply.problem != "" {
			all = failedReply(a, reply.problem)
		}
	}

	results := slices.Repeat([]queue.Result{all}, len(ids))
	for i, id := range ids {
		if failed[id] {
			results[i] = queue.Result{Status: a.Status, Reason: "reported in batchItemFailures"}
		}
	}
	return results
}

func failedReply(a *queue.Invocation, reason string) queue.Result {
	r := queue.Result{Status: a.Status, Reason: reason}
	r.Answer, r.Excerpt = summarizePayload(a.Payload)
	return r
}

func isUnsent(err error) bool {
	var unsent interface{ Unsent() bool }
	return errors.As(err, &unsent) && unsent.Unsent()
}

func callFailed(ctx context.Context, err error) queue.Result {
	if isUnsent(err) {
		return queue.Result{Outcome: queue.Unreached, Reason: unsentReason(ctx, err), Err: err}
	}

	r := queue.Result{Err: err}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		r.Reason = "stopped before the function had responded"
	case isTimeout(err) || ctx.Err() != nil:
		r.Reason = "no response in time; the function may be running"
	case isClosed(err):
		r.Reason = "connection closed before the response was complete; the function may have run"
	default:
		r.Reason = "incomplete response; the function may have run"
	}
	return r
}

func unsentReason(ctx context.Context, err error) string {
	var explained *queue.Error
	switch {
	case ctx.Err() != nil:
		return "stopped before anything was sent"
	case errors.As(err, &explained):
		return explained.Error()
	}
	return "the function could not be called"
}

func tooLarge(a *queue.Invocation) bool {
	return a.Status == http.StatusRequestEntityTooLarge || a.Code == "RequestTooLargeException" ||
		a.Code == "SerializedRequestEntityTooLargeException"
}

func callRefused(a *queue.Invocation) queue.Result {
	outcome, advice := advise(a)
	r := queue.Result{Outcome: outcome, Status: a.Status, Reason: "HTTP " + strconv.Itoa(a.Status)}
	if isPlainName(a.Code) {
		r.Reason += " " + a.Code
	}
	if a.Message != "" {
		r.Err = errors.New(a.Message)
	}

	switch outcome {
	case queue.Throttled:
		r.RetryAfter = a.RetryAfter
		if advice == takesNoMore && isPlainName(a.Reason) {
			r.Reason += " " + a.Reason
		}
	case queue.Failed: // the service rejected the event itself
		r.Unsent = tooLarge(a) || a.Status >= 400 && a.Status <= 499
	}
	if advice != "" {
		r.Reason += ": " + advice
	}
	return r
}

const (
	takesNoMore = "the function accepts no more requests for now"
	cannotRun   = "the service cannot run the function for now"
)

// advise returns the outcome of the service's own response, and advice for the user, or "". A gateway timeout is
// Failed, because the function may have run.
func advise(a *queue.Invocation) (outcome queue.Outcome, advice string) {
	if tooLarge(a) {
		return queue.Failed, "the event is too large for the function (store large bodies elsewhere and send a reference)"
	}

	switch a.Code {
	case "TooManyRequestsException", "ThrottlingException", "Throttling", "ThrottledException", "RequestLimitExceeded",
		"RequestThrottled", "RequestThrottledException", "EC2ThrottledException":
		return queue.Throttled, takesNoMore
	case "ResourceNotReadyException", "ResourceConflictException", "ENILimitReachedException", "ENINotReadyException",
		"SubnetIPAddressLimitReachedException", "SnapStartException", "SnapStartNotReadyException",
		"SnapStartTimeoutException", "SnapStartRegenerationFailureException", "EFSMountConnectivityException",
		"EFSMountFailureException", "EFSMountTimeoutException", "S3FilesMountConnectivityException",
		"S3FilesMountFailureException", "S3FilesMountTimeoutException", "CodeArtifactUserPendingException",
		"CodeArtifactUserFailedException", "CodeArtifactUserDeletedException", "ServiceQuotaExceededException":
		return queue.Throttled, cannotRun
	case "ResourceNotFoundException":
		return queue.Unreached, "function not found: check its name, its alias or version, the account and the region"
	case "NoPublishedVersionException", "ModeNotSupportedException", "UnsupportedMediaTypeException":
		return queue.Unreached,
			"the function cannot be invoked this way: check its alias or version, and its configuration"
	case "ExpiredToken", "ExpiredTokenException", "UnrecognizedClientException", "InvalidClientTokenId",
		"IncompleteSignature", "InvalidSignatureException", "SignatureDoesNotMatch", "MissingAuthenticationToken",
		"MissingAuthenticationTokenException", "RequestExpired":
		return queue.Unreached,
			"the credentials were not accepted: check that they are current, and this machine's clock"
	}

	switch {
	case a.Status == http.StatusTooManyRequests:
		return queue.Throttled, takesNoMore
	case a.Status >= 500 && a.Status != http.StatusGatewayTimeout:
		return queue.Throttled, cannotRun
	case a.Status == http.StatusUnauthorized, a.Status == http.StatusForbidden:
		return queue.Unreached, "access denied: allow these credentials lambda:InvokeFunction on the function"
	case a.Status == http.StatusNotFound, a.Status >= 300 && a.Status <= 399:
		return queue.Unreached, "no Lambda service responded: check the region and AWS_ENDPOINT_URL_LAMBDA"
	}

	return queue.Failed, ""
}

// A function error's message may contain anything, so only its type is shown.
func functionError(a *queue.Invocation) string {
	var body struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}
	_ = json.Unmarshal(a.Payload, &body) // unreadable fields stay empty
	words := "the function failed"
	switch {
	case body.Type == "Sandbox.Timedout", strings.Contains(body.Message, "Task timed out after"):
		words = "the function timed out"
	case isPlainName(body.Type):
		words += " with " + body.Type
	}
	if isPlainName(a.FunctionError) {
		words += " (" + strings.ToLower(a.FunctionError) + ")"
	}
	return words
}

func summarizePayload(payload []byte) (line, excerpt string) {
	var body struct {
		Message string `json:"errorMessage"`
	}
	_ = json.Unmarshal(payload, &body) // unreadable fields stay empty
	line = cmp.Or(printable(firstBytes(body.Message)), printable(strings.TrimSpace(firstBytes(string(payload)))))
	return line, excerptBelow(line, string(payload))
}

func firstBytes(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), excerptBytes)], "")
}
