package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"tendril/api"
	"tendril/queue"
)

func asRefusal(err error) *api.Error {
	var own *api.Error
	if errors.As(err, &own) {
		return own
	}
	var refused *queue.Error
	if errors.As(err, &refused) {
		return &api.Error{Status: cmp.Or(statuses[refused.Code], http.StatusBadRequest), Message: err.Error(),
			Hint: hints[refused.Code], Code: refused.Code}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return api.NewError(http.StatusServiceUnavailable, "the request was cancelled before it was answered", "")
	}
	return api.NewError(http.StatusInternalServerError, err.Error(), "")
}

var statuses = map[string]int{
	queue.CodeQueueDoesNotExist:    http.StatusNotFound,
	queue.CodeResourceNotFound:     http.StatusNotFound,
	queue.CodePurgeQueueInProgress: http.StatusConflict,
	queue.CodeQueueNameExists:      http.StatusConflict,
	queue.CodeQueueDeletedRecently: http.StatusConflict,
	queue.CodeUnsupportedOperation: http.StatusConflict,
	queue.CodeOverLimit:            http.StatusTooManyRequests,
	queue.CodeRequestThrottled:     http.StatusTooManyRequests,
	queue.CodeAccessDenied:         http.StatusForbidden,
	queue.CodeUnreachable:          http.StatusBadGateway,
	queue.CodeStorageFull:          http.StatusInsufficientStorage,
	queue.CodeStorageFailed:        http.StatusServiceUnavailable,
	queue.CodeClosed:               http.StatusServiceUnavailable,
}

var hints = map[string]string{
	queue.CodeQueueDoesNotExist:    "GET /api/v1/queues lists the queues",
	queue.CodePurgeQueueInProgress: "wait a minute after a purge before the next one",
}

func asConflict(err error) error {
	var own *api.Error
	var refused *queue.Error
	if err == nil || errors.As(err, &own) || errors.As(err, &refused) {
		return err
	}
	return api.Conflict(err.Error(), "'tendril status' shows the state of the environment")
}
