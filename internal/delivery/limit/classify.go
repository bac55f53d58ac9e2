package limit

import (
	"context"
	"errors"
	"net/http"

	"tendril/queue"
)

// resultClass is the meaning of one result for the app's health.
type resultClass uint8

const (
	// resultIgnored says nothing: the message never reached the app, or the app
	// did not cause the end of the delivery.
	resultIgnored resultClass = iota
	// resultOK: the app answered, whatever it did with the message.
	resultOK
	// resultFailed: the app did not answer, or answered that it failed itself.
	resultFailed
)

// classify returns what a result means for the breaker:
//
//	done                                    ok
//	unreached, throttled, postponed         ignored: the worker handles these itself
//	failed, but never sent                  ignored: the app was not asked
//	canceled by the worker (Err is,
//	or wraps, context.Canceled)             ignored
//	no answer, or an incomplete one         failed
//	status 500 or more, or a function
//	that ended with an error                failed
//	any other answer                        ok
//
// A 4xx status, 429 included, comes from an app that works and rejects this
// message, so a poison message that is retried again and again does not stop the
// others. The same is true of a message that a function reports as failed.
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

// classifyAll returns what the results of one delivery mean, and whether one of its
// messages is done. A batch is ok if one of its messages is, and failed only if none is.
func classifyAll(results []queue.Result) (class resultClass, done bool) {
	for i := range results {
		done = done || results[i].Outcome == queue.Done
		if c := classify(&results[i]); c == resultOK || class == resultIgnored {
			class = c
		}
	}
	return class, done
}
