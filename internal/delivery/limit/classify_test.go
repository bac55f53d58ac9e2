package limit

import (
	"context"
	"fmt"
	"io"
	"testing"

	"tendril/queue"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		res  queue.Result
		want resultClass
	}{
		{"done", queue.Result{Outcome: queue.Done, Status: 200}, resultOK},
		{"done without a status", queue.Result{Outcome: queue.Done}, resultOK},
		{"connection refused", queue.Result{Outcome: queue.Unreached, Err: io.EOF}, resultIgnored},
		{"throttled", queue.Result{Outcome: queue.Throttled, Status: 429}, resultIgnored},
		{"canceled", queue.Result{Err: fmt.Errorf("stopped: %w", context.Canceled)}, resultIgnored},
		{"not encodable", queue.Result{Unsent: true, Err: io.EOF}, resultIgnored},
		{"too large to be sent", queue.Result{Unsent: true}, resultIgnored},
		{"refused by the service before the app", queue.Result{Unsent: true, Status: 413, Err: io.EOF}, resultIgnored},
		{"no answer in time", queue.Result{Err: context.DeadlineExceeded}, resultFailed},
		{"no answer", queue.Result{}, resultFailed},
		{"connection lost", queue.Result{Err: io.EOF}, resultFailed},
		{"incomplete success", queue.Result{Status: 200, Err: io.ErrUnexpectedEOF}, resultFailed},
		{"500", queue.Result{Status: 500}, resultFailed},
		{"503", queue.Result{Status: 503}, resultFailed},
		{"error or timeout of a function", queue.Result{Status: 200, Fault: true}, resultFailed},
		{"reported by a function", queue.Result{Status: 200}, resultOK},
		{"499", queue.Result{Status: 499}, resultOK},
		{"429", queue.Result{Status: 429}, resultOK},
		{"404", queue.Result{Status: 404}, resultOK},
		{"301", queue.Result{Status: 301}, resultOK},
		{"204 where only 200 is success", queue.Result{Status: 204}, resultOK},
	} {
		if got := classify(&tt.res); got != tt.want {
			t.Errorf("%s: class %d, want %d", tt.name, got, tt.want)
		}
	}
}
