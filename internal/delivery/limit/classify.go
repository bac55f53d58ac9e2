package limit

import (
	"context"
	"errors"
	"net/http"

	"tendril/queue"
)

type resultClass uint8

const (
	resultIgnored resultClass = iota
	resultOK
	resultFailed
)

// classify returns one of these classes:
//
//	done                                    ok
//	unreached, throttled, postponed         ignored: handled by the worker
//	failed without having been sent         ignored
//	canceled by the worker (Err is,
//	or wraps, context.Canceled)             ignored
//	no response, or an incomplete one       failed
//	status 500 or more, or a function
//	that ended with an error                failed
//	any other response                      ok
//
// 4xx statuses, including 429, come from a working app that rejects this message, so that a poison message does not
// stop the others. The same applies to messages reported as failed in batchItemFailures.
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

// classifyAll returns resultOK if any result is OK, or else resultFailed if any failed. done reports whether any
// message is done.
func classifyAll(results []queue.Result) (class resultClass, done bool) {
	for i := range results {
		done = done || results[i].Outcome == queue.Done
		if c := classify(&results[i]); c == resultOK || class == resultIgnored {
			class = c
		}
	}
	return class, done
}
