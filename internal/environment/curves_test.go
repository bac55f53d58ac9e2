package environment

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/observe/health"
	"tendril/internal/observe/series"
	"tendril/queue"
)

func TestCurvesReadTheCounters(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{})
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ContentLength == int64(len("wait")) {
			<-finish
		}
	}))
	defer target.Close()
	r := run(t, map[string]string{"target": target.URL, "name": "jobs", "http-connections": "7"}, nil)
	<-r.life.started
	send := func(body string, n int) {
		for range n {
			if _, err := r.queues.broker.Queue("jobs").Send(t.Context(), []queue.Outgoing{{Body: body}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	send("go", 5)
	send("wait", 2)
	read := func() series.Reading { return r.observe.curves.count(time.Now()) }
	eventually(t, "five messages done and two in work", func() bool {
		now := read()
		return now.Total.Out == 5 && now.InFlight == 2
	})
	now := read()
	if now.Total.In != 7 || now.Limit != 7 || !now.HasOldest || now.Queues["jobs"] != (series.Counts{In: 7, Out: 5}) ||
		now.Latencies == (health.Latencies{}) {
		t.Errorf("it reads %+v", now)
	}
	if _, known := now.Queues["jobs-dead"]; !known {
		t.Errorf("the dead-letter queue is missing in %v", now.Queues)
	}
	close(finish)
	eventually(t, "all done", func() bool { return read().InFlight == 0 })
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

func TestDeploymentMarksContainNoSecrets(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{api.DeployDone: "v2", api.DeployRolledBack: "v2: rolled back",
		api.DeployFailed: "v2: failed"} {
		d := api.Deployment{To: "v2", State: state, Error: "password=1234", Step: "hook"}
		if got := deploymentMark(&d); got != want {
			t.Errorf("%s: it says %s", strconv.Quote(state), got)
		}
	}
}
