package runtimeapi

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"time"

	"tendril/queue"
)

const (
	// maxRequest is the largest payload of an invocation in bytes, as Lambda has
	// it.
	maxRequest = 6 << 20
	// maxResponse is the largest answer of a function in bytes: Lambda grants it
	// 100 more than the 6 MiB.
	maxResponse = 6<<20 + 100
)

// unhandled is what Lambda calls every error of a function by now.
const unhandled = "Unhandled"

// errNotInvoked says that nothing of the payload reached the function: the
// caller gave up while waiting for a free process, or the pool was stopped. Any
// other error of [Pool.Invoke] means that the function may have run. It has a
// method Unsent, which returns true, for those who do not import this package.
var errNotInvoked error = notInvoked{}

type notInvoked struct{}

func (notInvoked) Error() string { return "the function was not invoked" }

// Unsent reports that nothing of the payload was sent.
func (notInvoked) Unsent() bool { return true }

// tooLarge answers a payload that Lambda would refuse.
func tooLarge(size int) queue.Invocation {
	return queue.Invocation{
		Status:  http.StatusRequestEntityTooLarge,
		Code:    "RequestTooLargeException",
		Message: fmt.Sprintf("the payload has %d bytes, a function takes at most %d", size, maxRequest),
	}
}

// paused answers while no process may be started.
func paused(left time.Duration) queue.Invocation {
	left = max(left, time.Millisecond)
	return queue.Invocation{
		Status:     http.StatusTooManyRequests,
		Code:       "TooManyRequestsException",
		Reason:     "FunctionKeepsEnding",
		RetryAfter: left,
		Message:    fmt.Sprintf("the function's process keeps ending; it is started again in %.1f s", left.Seconds()),
	}
}

// failure is an error of the function in Lambda's form. id may be "".
func failure(kind, id, text string) queue.Invocation {
	if id != "" {
		text = "RequestId: " + id + " Error: " + text
	}
	payload, _ := json.Marshal(struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}{kind, text}) // two strings always marshal
	return queue.Invocation{Status: http.StatusOK, FunctionError: unhandled, Payload: payload, Reason: kind}
}

// taskTimedOut is Lambda's answer for an invocation beyond its time limit.
func taskTimedOut(id string, limit time.Duration) queue.Invocation {
	return failure("Sandbox.Timedout", id, fmt.Sprintf("Task timed out after %.2f seconds", seconds(limit)))
}

// seconds rounds up to hundredths, so that a short limit is not "0.00".
func seconds(d time.Duration) float64 { return math.Ceil(d.Seconds()*100) / 100 }

// responseTooLarge is Lambda's answer for a response that it does not carry.
func responseTooLarge() queue.Invocation {
	return failure("Function.ResponseSizeTooLarge", "",
		fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", maxResponse))
}

// posted is an error that the function reported itself. kind is what its header
// says and may be "". What is not JSON is put into the form that callers expect.
func posted(kind string, body []byte) queue.Invocation {
	var form struct {
		Type string `json:"errorType"`
	}
	valid := json.Valid(body)
	if valid {
		_ = json.Unmarshal(body, &form) // JSON of another form has no type
	}
	if form.Type != "" {
		kind = form.Type
	}
	if len(kind) > 128 || !typeName.MatchString(kind) {
		kind = "Runtime.UnknownReason"
	}
	if !valid {
		return failure(kind, "", string(body))
	}
	return queue.Invocation{Status: http.StatusOK, FunctionError: unhandled, Payload: body, Reason: kind}
}

// typeName is what may pass for the type of an error in a log: the name of a
// class, not a sentence made of the message.
var typeName = regexp.MustCompile(`^[A-Za-z_*][A-Za-z0-9_.:$/*<>-]*$`)

// ok is the answer that a function gave.
func ok(payload []byte) queue.Invocation {
	return queue.Invocation{Status: http.StatusOK, Payload: payload}
}
