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
	// Lambda's limits in bytes.
	maxRequest  = 6 << 20
	maxResponse = 6<<20 + 100
)

const unhandled = "Unhandled"

// errNotInvoked means that the function received nothing. After any other error, it may have run.
var errNotInvoked error = notInvoked{}

type notInvoked struct{}

func (notInvoked) Error() string { return "the function was not invoked" }

func (notInvoked) Unsent() bool { return true }

func tooLarge(size int) queue.Invocation {
	return queue.Invocation{
		Status:  http.StatusRequestEntityTooLarge,
		Code:    "RequestTooLargeException",
		Message: fmt.Sprintf("the payload has %d bytes, but a function accepts at most %d", size, maxRequest),
	}
}

func keepsExiting(left time.Duration) queue.Invocation {
	left = max(left, time.Millisecond)
	return queue.Invocation{
		Status:     http.StatusTooManyRequests,
		Code:       "TooManyRequestsException",
		Reason:     "FunctionKeepsEnding",
		RetryAfter: left,
		Message:    fmt.Sprintf("the function's process keeps exiting; it restarts in %.1f s", left.Seconds()),
	}
}

// failure returns a function error in Lambda's format. id may be "".
func failure(kind, id, text string) queue.Invocation {
	if id != "" {
		text = "RequestId: " + id + " Error: " + text
	}
	payload, _ := json.Marshal(struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}{kind, text})
	return queue.Invocation{Status: http.StatusOK, FunctionError: unhandled, Payload: payload, Reason: kind}
}

// seconds rounds up to hundredths, so that a short limit is not shown as 0.
func seconds(d time.Duration) float64 { return math.Ceil(d.Seconds()*100) / 100 }

// postedError returns a function error posted by the function. The body's errorType takes precedence over kind, which
// comes from a header or trailer and may be "".
func postedError(kind string, body []byte) queue.Invocation {
	var form struct {
		Type string `json:"errorType"`
	}
	valid := json.Valid(body)
	if valid {
		_ = json.Unmarshal(body, &form) // other JSON has no errorType
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

// typeName matches class names, which are safe to log.
var typeName = regexp.MustCompile(`^[A-Za-z_*][A-Za-z0-9_.:$/*<>-]*$`)

func success(payload []byte) queue.Invocation {
	return queue.Invocation{Status: http.StatusOK, Payload: payload}
}
