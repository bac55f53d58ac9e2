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
		placed api.Placed
		print  func(*base.CLI, *api.Message, api.Placed)
		want   string
	}{
		"visible":       {api.Placed{ID: "a", State: api.MessageVisible}, printRetried, "message a is visible in jobs\n"},
		"taken":         {api.Placed{ID: "a", State: api.MessageTaken}, printRetried, "message a in jobs was delivered at once\n"},
		"in flight":     {api.Placed{ID: "a", State: api.MessageInFlight, VisibleAt: later}, printRetried, "message a in jobs is being delivered; "},
		"delayed again": {api.Placed{ID: "a", State: api.MessageInFlight, VisibleAt: later}, printPlaced, "message a in jobs is hidden until "},
	} {
		var talk strings.Builder
		c.print(&base.CLI{Err: &talk}, &api.Message{ID: "a", Queue: "jobs"}, c.placed)
		if got := talk.String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
