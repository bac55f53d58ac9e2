package deliver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"tendril/queue"
)

// judgeCall says what one call means for each of the messages in its event, whose ids
// are given.
//
//	nothing of the event left           unreached
//	no whole answer                     failed: it may have run
//	200, the function failed            failed
//	200, it returned                    by its reply: done, or reported as failed
//	429, 5xx, not ready                 throttled: it did not run
//	401, 403, 404, redirected           unreached: set up wrongly, no message's fault
//	413, any other status               failed
func judgeCall(ctx context.Context, a *queue.Invocation, err error, ids []string, results []queue.Result) {
	switch {
	case err != nil:
		fill(results, lost(ctx, err))
	case a.Status != http.StatusOK:
		fill(results, refused(a))
	case a.FunctionError != "":
		fill(results, queue.Result{Status: a.Status, Reason: functionError(a), Fault: true})
	default:
		failed, problem := readReply(a.Payload, ids)
		if problem != "" {
			fill(results, queue.Result{Status: a.Status, Reason: problem})
			return
		}
		for i := range results {
			results[i] = queue.Result{Outcome: queue.Done, Status: a.Status}
			if failed != nil && failed[i] {
				results[i] = queue.Result{Status: a.Status, Reason: "reported in batchItemFailures"}
			}
		}
	}
}

func fill(results []queue.Result, r queue.Result) {
	for i := range results {
		results[i] = r
	}
}

// lost is the result of a call without a whole answer.
func lost(ctx context.Context, err error) queue.Result {
	var unsent interface{ Unsent() bool }
	if errors.As(err, &unsent) && unsent.Unsent() {
		return queue.Result{Outcome: queue.Unreached, Reason: unsentCall(ctx, err), Err: err}
	}
	reason := "no whole answer; the function may have run"
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		reason = "stopped before the function had answered"
	case isTimeout(err) || ctx.Err() != nil:
		reason = "no answer in time; the function may be running"
	case isClosed(err):
		reason = "connection closed before the whole answer; the function may have run"
	}
	return queue.Result{Reason: reason, Err: err}
}

// unsentCall says why a call did not leave: in the Invoker's own sentence where it
// has one.
func unsentCall(ctx context.Context, err error) string {
	var explained *queue.Error
	switch {
	case ctx.Err() != nil:
		return "stopped before anything was sent"
	case errors.As(err, &explained):
		return explained.Error()
	default:
		return "the function could not be called"
	}
}

// tooLarge reports whether an event was refused, unrun, for its size.
func tooLarge(a *queue.Invocation) bool {
	switch a.Code {
	case "RequestTooLargeException", "SerializedRequestEntityTooLargeException":
		return true
	}
	return a.Status == http.StatusRequestEntityTooLarge
}

// refused is the result of a call that did not run the function, or of which no
// more is known than a status.
func refused(a *queue.Invocation) queue.Result {
	r := queue.Result{Status: a.Status, Reason: refusalWords(a)}
	if a.Message != "" {
		r.Err = errors.New(a.Message)
	}
	switch {
	case tooLarge(a):
		r.Unsent = true
		r.Reason += ": the event is too large for the function (keep large bodies elsewhere, and send where)"
	case isThrottle(a):
		r.Outcome, r.RetryAfter = queue.Throttled, a.RetryAfter
		if a.Reason != "" && isPlainName(a.Reason) {
			r.Reason += " " + a.Reason
		}
		r.Reason += ": the function takes no more for now"
	case isUnready(a):
		r.Outcome, r.RetryAfter = queue.Throttled, a.RetryAfter
		r.Reason += ": the service cannot run the function for now"
	default:
		if advice := setupAdvice(a); advice != "" {
			r.Outcome = queue.Unreached
			r.Reason += ": " + advice
			break
		}
		r.Unsent = a.Status >= 400 && a.Status <= 499 // the service's own word about the event
	}
	return r
}

// refusalWords names the status, and the refusal where it has a name.
func refusalWords(a *queue.Invocation) string {
	words := "status " + strconv.Itoa(a.Status)
	if isPlainName(a.Code) {
		words += " " + a.Code
	}
	return words
}

func isThrottle(a *queue.Invocation) bool {
	switch a.Code {
	case "TooManyRequestsException", "ThrottlingException", "Throttling", "ThrottledException", "RequestLimitExceeded",
		"RequestThrottled", "RequestThrottledException", "EC2ThrottledException":
		return true
	}
	return a.Status == http.StatusTooManyRequests
}

// isUnready reports whether the service could not run the function for a reason that
// passes by itself or through its owner. A gateway's time-out is not one of
// these: behind it the function may have run.
func isUnready(a *queue.Invocation) bool {
	switch a.Code {
	case "ResourceNotReadyException", "ResourceConflictException", "ENILimitReachedException", "ENINotReadyException",
		"SubnetIPAddressLimitReachedException", "SnapStartException", "SnapStartNotReadyException",
		"SnapStartTimeoutException",
		"SnapStartRegenerationFailureException", "EFSMountConnectivityException", "EFSMountFailureException",
		"EFSMountTimeoutException",
		"S3FilesMountConnectivityException", "S3FilesMountFailureException", "S3FilesMountTimeoutException",
		"CodeArtifactUserPendingException", "CodeArtifactUserFailedException", "CodeArtifactUserDeletedException",
		"ServiceQuotaExceededException":
		return true
	}
	return a.Status >= 500 && a.Status != http.StatusGatewayTimeout
}

// setupAdvice says what to put right when the way to the function is set up wrongly;
// "" when it is not that.
func setupAdvice(a *queue.Invocation) string {
	switch a.Code {
	case "ResourceNotFoundException":
		return "there is no such function: check its name, its alias or version, the account and the region"
	case "NoPublishedVersionException", "ModeNotSupportedException", "UnsupportedMediaTypeException":
		return "the function cannot be invoked this way: check its alias or version, and its configuration"
	case "ExpiredToken", "ExpiredTokenException", "UnrecognizedClientException", "InvalidClientTokenId",
		"IncompleteSignature",
		"InvalidSignatureException", "SignatureDoesNotMatch", "MissingAuthenticationToken",
		"MissingAuthenticationTokenException",
		"RequestExpired":
		return "the credentials were not accepted: check that they are current, and this machine's clock"
	}
	switch {
	case a.Status == http.StatusUnauthorized, a.Status == http.StatusForbidden:
		return "access denied: allow these credentials lambda:InvokeFunction on the function"
	case a.Status == http.StatusNotFound, a.Status >= 300 && a.Status <= 399:
		return "no Lambda service answered: check the region and AWS_ENDPOINT_URL_LAMBDA"
	}
	return ""
}

// functionError says how the function failed, by the kind of its error alone: the
// text of an error can hold anything.
func functionError(a *queue.Invocation) string {
	var body struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}
	_ = json.Unmarshal(a.Payload, &body) // what it cannot read stays empty
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
