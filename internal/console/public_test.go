package console

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"tendril/api"
)

func TestDetailsNeedTheToken(t *testing.T) {
	t.Parallel()
	const secret = "pass" + "word"
	run := api.TaskRun{Task: "tidy", Outcome: "failed", Reason: secret}
	ds := &Deliveries{}
	ds.Record(api.Delivery{MessageID: "m1", Queue: "jobs", Outcome: "failed", Status: 500, Reason: secret, Answer: secret,
		At: time.Now()})
	tasks := api.TasksStatus{Leader: api.Leader{Error: secret},
		Tasks: []api.Task{{Name: "tidy", URL: "/tidy?key=" + secret, Last: &run}}}
	status := api.Status{
		State:      api.StateRunning,
		Deployment: &api.Deployment{State: api.DeployRolledBack, To: "two", Step: "hook " + secret, Error: secret},
		Workers:    []api.Worker{{Queue: "jobs", WorkerCounts: api.WorkerCounts{Received: 7}, LastError: secret}},
		Scaling:    &api.Scaling{Problem: secret, Decisions: []api.ScaleDecision{{Rule: "backlog", NotApplied: secret}}},
		Tasks:      &tasks,
	}
	s := New(&Options{
		Token: testToken, Deliveries: ds, Status: func() api.Status { return status },
		Tasks: &TaskOptions{Status: func() api.TasksStatus {
			return tasks
		}, History: func(string) []api.TaskRun { return []api.TaskRun{run} }},
	})
	shown := 0
	for _, rt := range s.routes() {
		method, path := example(rt.pattern)
		if rt.kind != open || method != http.MethodGet {
			continue
		}
		_, without := exchange(t, s, get(path))
		_, with := exchange(t, s, with(get(path), "Authorization", "Bearer "+testToken))
		if text := encode(t, without); strings.Contains(text, secret) {
			t.Errorf("%s says to everybody: %s", path, text)
		}
		if strings.Contains(encode(t, with), secret) {
			shown++
		}
	}
	if shown != 6 { // status, deliveries, an outcome, tasks and two histories
		t.Errorf("%d routes show details to a caller with the token", shown)
	}
	_, answer := exchange(t, s, get("/api/v1/status"))
	if text := encode(t, answer); !strings.Contains(text, `"received":7`) ||
		!strings.Contains(text, `"state":"rolled back"`) || !strings.Contains(text, withheld) {
		t.Errorf("states, counts and a hint are missing: %s", text)
	}
	if status.Workers[0].LastError != secret || status.Deployment.Error != secret ||
		tasks.Tasks[0].Last.Reason != secret || ds.Recent(1)[0].Reason != secret {
		t.Error("what the environment holds was changed")
	}
}

func TestPublicDeliveryHasOnlyListedFields(t *testing.T) {
	t.Parallel()
	var d api.Delivery
	all := reflect.ValueOf(&d).Elem()
	for i := range all.NumField() {
		switch f := all.Field(i); {
		case f.Kind() == reflect.String:
			f.SetString("x")
		case f.CanInt():
			f.SetInt(1)
		case f.Type() == reflect.TypeFor[time.Time]():
			f.Set(reflect.ValueOf(time.Unix(1, 0).UTC()))
		default:
			t.Fatalf("no value for the field %s", all.Type().Field(i).Name)
		}
	}
	const want = `{"message_id":"x","queue":"x","outcome":"x","status":1,"reason":"` + withheld + `","attempt":1,` +
		`"receive_count":1,"duration_ms":1,"wait_ms":1,"at":"1970-01-01T00:00:01Z","retry_at":"1970-01-01T00:00:01Z",` +
		`"dead_letter_queue":"x"}`
	if got := encode(t, publicDelivery(d)); got != want {
		t.Errorf("public delivery:\n%s\nwant\n%s", got, want)
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
