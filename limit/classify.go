package limit

import (
	"context"
	"errors"
	"net/http"

	"tendril/queue"
)

// verdict is what one result says about the app's health.
type resultClass uint8

const (
	// mute: nothing. The message never reached the app, or the end of the
	// delivery was not the app's doing.
	resultIgnored resultClass = iota
	// well: the app answered, with whatever it thinks of the message.
	resultOK
	// ill: the app failed to answer, or said itself that it failed.
	resultFailed
)

// judge says what a result means for the breaker:
//
//	done                                  well
//	unreached, throttled, postponed       mute: the worker has other means
//	failed unsent                         mute: the app was not asked
//	cut off by the worker (Err is,
//	or wraps, context.Canceled)           mute
//	no answer, or only a part of one      ill
//	an answer of 500 or more, or of a
//	function that ended with an error     ill
//	any other answer                      well
//
// A 4xx, also 429, is a judgement of the message or of the moment by an app that
// works: one poison message that comes again and again must not stop the others. So
// is a message that a function names as failed in a reply of its own.
func classify(res *queue.Result) resultClass {
	switch {
	case res.Outcome == queue.Done:
		return resultOK
	case res.Outcome != queue.Failed, res.Unsent:
		return resultIgnored
	case res.Err != nil && errors.Is(res.Err, context.Canceled):
		return resultIgnored
	case res.Err != nil, res.Fault, res.Status == 0, res.Status >= http.StatusInternalServerError:
		return resultFailed
	default:
		return resultOK
	}
}
