package api

import "testing"

func TestStatusNamesTheServerOfTheQueues(t *testing.T) {
	t.Parallel()
	for want, st := range map[string]Status{
		"embedded queue":          {Backend: BackendEmbedded},
		"Amazon SQS":              {Backend: BackendSQS},
		"server queues.test:9324": {Backend: BackendSQS, QueueServer: "queues.test:9324"},
	} {
		if got := st.QueuesAt(); got != want {
			t.Errorf("%+v is %q, want %q", st, got, want)
		}
	}
}
