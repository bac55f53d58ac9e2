package limit

import (
	"context"
	"fmt"
	"io"
	"testing"

	"tendril/queue"
)

func TestWhatAResultSaysAboutTheApp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		res  queue.Result
		want verdict
	}{
		{"done", queue.Result{Outcome: queue.Done, Status: 200}, well},
		{"done without a status", queue.Result{Outcome: queue.Done}, well},
		{"refused connection", queue.Result{Outcome: queue.Unreached, Err: io.EOF}, mute},
		{"throttled", queue.Result{Outcome: queue.Throttled, Status: 429}, mute},
		{"cut off", queue.Result{Err: fmt.Errorf("stopped: %w", context.Canceled)}, mute},
		{"never packed", queue.Result{Unsent: true, Err: io.EOF}, mute},
		{"too large to be sent", queue.Result{Unsent: true}, mute},
		{"refused by the service before the app", queue.Result{Unsent: true, Status: 413, Err: io.EOF}, mute},
		{"no answer in time", queue.Result{Err: context.DeadlineExceeded}, ill},
		{"no answer", queue.Result{}, ill},
		{"connection lost", queue.Result{Err: io.EOF}, ill},
		{"a success that broke off", queue.Result{Status: 200, Err: io.ErrUnexpectedEOF}, ill},
		{"500", queue.Result{Status: 500}, ill},
		{"503", queue.Result{Status: 503}, ill},
		{"a function's error or time-out", queue.Result{Status: 200, Fault: true}, ill},
		{"reported by a function", queue.Result{Status: 200}, well},
		{"499", queue.Result{Status: 499}, well},
		{"429", queue.Result{Status: 429}, well},
		{"404", queue.Result{Status: 404}, well},
		{"301", queue.Result{Status: 301}, well},
		{"204 where only 200 is success", queue.Result{Status: 204}, well},
	} {
		if got := judge(&tt.res); got != tt.want {
			t.Errorf("%s: verdict %d, want %d", tt.name, got, tt.want)
		}
	}
}
