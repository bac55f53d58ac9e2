package environment

import (
	"testing"

	"tendril/internal/instances"
)

func TestRolloutIsNoPauseOfAQueue(t *testing.T) {
	t.Parallel()
	pause := instances.Pause{Reason: "x"}
	for name, c := range map[string]struct {
		by   []pauseSource
		held bool
	}{
		"nothing":                   {nil, false},
		"a rollout":                 {[]pauseSource{byRollout}, true},
		"an operator":               {[]pauseSource{byFleet}, false},
		"a rollout and an operator": {[]pauseSource{byRollout, byThis}, false},
		"a rollout and a signal":    {[]pauseSource{byRollout, byProcess}, false},
	} {
		var p pipeline
		for _, by := range c.by {
			p.pauses[by] = pause
		}
		if got := p.heldByRollout(); got != c.held {
			t.Errorf("%s: held is %t", name, got)
		}
	}
}
