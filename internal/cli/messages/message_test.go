package messages

import (
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/cli/base"
)

func TestRetryReportsWhetherTheMessageWasTaken(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(5*time.Minute + time.Second)
	for name, c := range map[string]struct {
		placed  api.Placed
		retried bool
		want    string
	}{
		"visible":       {api.Placed{ID: "a", State: api.MessageVisible}, true, "message a is visible in jobs\n"},
		"taken":         {api.Placed{ID: "a", State: api.MessageTaken}, true, "message a in jobs was delivered at once\n"},
		"in flight":     {api.Placed{ID: "a", State: api.MessageInFlight, VisibleAt: later}, true, "message a in jobs is being delivered; "},
		"delayed again": {api.Placed{ID: "a", State: api.MessageInFlight, VisibleAt: later}, false, "message a in jobs is hidden until "},
	} {
		var talk strings.Builder
		if err := printPlaced(&base.CLI{Err: &talk}, &api.Message{ID: "a", Queue: "jobs"}, c.placed, c.retried, nil); err != nil {
			t.Fatal(err)
		}
		if got := talk.String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
