package environment

import (
	"testing"
	"testing/synctest"
	"time"

	"tendril/deliver"
	"tendril/queue"
)

// A message that is refused before it is sent tells nothing of the app, so that nobody
// waits whether it ended over it.
func TestRefusedTaskPathHoldsUpNothing(t *testing.T) {
	t.Parallel()
	e := unstarted(t, map[string]string{})
	synctest.Test(t, func(t *testing.T) {
		r := &route{e: e, ways: map[string]*deliver.HTTP{}, open: func(address string) (*deliver.HTTP, error) {
			return deliver.NewHTTP(&deliver.HTTPOptions{Target: address})
		}}
		c := &appCopy{e: e, port: 1, work: map[string]int{}, died: make(chan struct{})}
		m := &queue.Message{ID: "m", ReceiveCount: 1, Run: &queue.Run{Path: "http://elsewhere/"}}
		start := time.Now()
		result, died := r.to(t.Context(), c, m, false)
		if !result.Unsent || result.Outcome != queue.Failed || died || time.Since(start) > 0 {
			t.Errorf("after %v: %+v, died %t", time.Since(start), result, died)
		}
	})
}
