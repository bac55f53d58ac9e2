package deliver

import (
	"errors"
	"time"

	"tendril/queue"
)

var errPaused = errors.New("paused")

// Paused returns the result of a message whose queue was paused before it was sent.
func Paused() queue.Result {
	return queue.Result{Outcome: queue.Postponed, Reason: "its queue was paused before it was sent", RetryAfter: time.Second}
}

func orNever(paused func() bool) func() bool {
	if paused == nil {
		return func() bool { return false }
	}
	return paused
}
