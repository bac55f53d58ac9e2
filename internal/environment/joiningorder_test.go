package environment

import (
	"testing"

	"tendril/internal/config"
)

func TestTaskQueuesJoinThePoolFirst(t *testing.T) {
	t.Parallel()
	of := func(weight int) *queues {
		q := &queues{}
		for _, name := range []string{"jobs", "mails", "nightly"} {
			w := queueWith(config.Settings{}, config.QueueSettings{Weight: weight})
			w.name = name
			w.forTask = name == "nightly"
			q.all = append(q.all, w)
		}
		return q
	}
	if got, want := of(0).orderText(), "nightly, then jobs, then mails"; got != want {
		t.Errorf("strict: %q, want %q", got, want)
	}
	if got, want := of(1).orderText(), "nightly 33%, jobs 33%, mails 33% of free slots"; got != want {
		t.Errorf("by weight: %q, want %q", got, want)
	}
}
