package sqsapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func callRegistry(t testing.TB, h http.Handler, action, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := newRequest(t.Context(), "x", body)
	r.Header.Set("X-Amz-Target", registryPrefix+action)
	return serve(h, r)
}

// Processes of different versions share a server, so no byte of the protocol may change.
func TestRegistryProtocol(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	mustCall(t, h, "CreateQueue", `{"QueueName":"jobs"}`)
	run := `{"Queue":"jobs","Id":"a@1","Task":"a","AtMilliseconds":1000,"Lease":"tasks","Term":7,"Message":{"MessageBody":"x"}}`
	unknown := `{"__type":"com.amazonaws.sqs#UnknownOperationException","message":"The operation `
	for i, step := range []struct {
		action, body string
		status       int
		want         string
	}{
		{"ReadLease", `{"Name":"tasks"}`, 200,
			`{"Lease":{"Owner":"","Version":"","Term":0,"DurationMilliseconds":0,"Released":false,"Data":""}}`},
		{"SwapLease", `{"Name":"tasks","Next":{"Owner":"n","Version":"v","Term":7,"DurationMilliseconds":15000,"Data":"d"}}`, 200,
			`{"Won":true,"Current":{"Owner":"n","Version":"v","Term":7,"DurationMilliseconds":15000,"Released":false,"Data":"d"}}`},
		{"SwapLease", `{"Name":"tasks","OldVersion":"w","Next":{"Version":"x","Term":8}}`, 200,
			`{"Won":false,"Current":{"Owner":"n","Version":"v","Term":7,"DurationMilliseconds":15000,"Released":false,"Data":"d"}}`},
		{"SwapLease", `{"Name":"tasks"}`, 400, "The request must contain the parameter Next."},
		{"SwapLease", `{"Name":"tasks","Next":{"Version":"x","DurationMilliseconds":9223372036854775807}}`, 400,
			"A lease lasts at most a year."},
		{"SwapLease", `{"Name":"tasks","Next":{"Term":8}}`, 400, "needs a version"},
		{"ReadLease", `{}`, 400, "InvalidParameterValueException"},
		{"Fire", run, 200, `,"SequenceNumber":"","Already":false}`},
		{"Fire", run, 200, `,"SequenceNumber":"","Already":true}`},
		{"Fire", strings.Replace(run, `:7`, `:6`, 1), 409,
			`{"__type":"com.amazonaws.sqs#StaleTerm","message":"Run a@1 was rejected: term 6 of lease tasks has ended."}`},
		{"Fire", strings.Replace(run, `:7`, `:0`, 1), 400, "give a lease and its term"},
		{"Fire", strings.Replace(run, `:7`, `:-1`, 1), 400, "give a lease and its term"},
		{"Fire", strings.Replace(run, `"tasks"`, `""`, 1), 400, "give a lease and its term"},
		{"Fire", strings.Replace(run, `"x"`, `""`, 1), 400, "MessageBody"},
		{"Fire", strings.Replace(run, `jobs`, `other`, 1), 400, "QueueDoesNotExist"},
		{"Fire", `{"Id":"a","AtMilliseconds":1,"Message":{}}`, 400, "parameter Queue."},
		{"Fire", `{"Queue":"jobs","Id":"a","Message":{}}`, 400, "parameter AtMilliseconds."},
		{"Fire", `{"Queue":"jobs","Id":"a","AtMilliseconds":1}`, 400, "parameter Message."},
		{"LastFires", `{"Tasks":["a","b"]}`, 200, `{"Last":{"a":1000}}`},
		{"SkipFire", `{"Id":"a@1","Task":"a","AtMilliseconds":1000}`, 200, `{"Skipped":true}`},
		{"SkipFire", `{"Id":"a@1","Task":"a","AtMilliseconds":1000,"Ids":["a@0"]}`, 200, `{"Skipped":true}`},
		{"SkipFire", `{"Id":"a@1","Task":"a","AtMilliseconds":1000,"Ids":["a@0","a@1"]}`, 200,
			`{"Skipped":true,"Made":{"a@1":"`},
		{"SkipFire", `{"Id":"a@1","AtMilliseconds":1000}`, 400, "Invalid name of a task"},
		{"SinceRuns", `{"Lease":"tasks","From":{"a":1}}`, 400, "give a lease and its term"},
		{"SinceRuns", `{"From":{"":1}}`, 400, "Invalid name of a task"},
		{"SinceRuns", `{"Lease":"tasks","Term":6,"From":{"a":1}}`, 409, "StaleTerm"},
		{"SinceRuns", `{"From":{"a":500,"b":2000},"Schedules":{"b":"daily"}}`, 200,
			`{"Since":{"a":1000,"b":2000},"From":{"b":2000}}`},
		{"LastFires", ``, 200, `{"Last":{}}`},
		{"Paused", ``, 200, `{"Paused":{}}`},
		{"SetPaused", `{"Task":"a","Reason":"why"}`, 400, "parameter Paused."},
		{"SetPaused", `{"Task":"a","Reason":"why","Paused":true}`, 200, `{"Paused":true}`},
		{"Paused", `{}`, 200, `{"Paused":{"a":"why"}}`},
		{"SetPaused", `{"Task":"a","Paused":false}`, 200, `{"Paused":false}`},
		{"Paused", `{}`, 200, `{"Paused":{}}`},
		{"Paused", `{`, 400, "SerializationException"},
		{"SendMessage", `{}`, 400, unknown},
	} {
		w := callRegistry(t, h, step.action, step.body)
		if w.Code != step.status || w.Header().Get("Content-Type") != jsonType ||
			!strings.Contains(w.Body.String(), step.want) {
			t.Errorf("step %d, %s %s: %d %s, want %s", i, step.action, step.body, w.Code, w.Body, step.want)
		}
	}
	if w := call(h, "Fire", run); w.Code != 400 || !strings.Contains(w.Body.String(), unknown) {
		t.Errorf("AmazonSQS.Fire: %d %s", w.Code, w.Body)
	}
	if l, err := h.broker.Ledger("jobs"); l.Sent != 1 || err != nil {
		t.Errorf("%d messages, %v; want 1", l.Sent, err)
	}
}

func TestRegistryIsGuarded(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	for name, c := range map[string]struct {
		change func(r *http.Request)
		status int
	}{
		"a page":         {func(r *http.Request) { r.Header.Set("Origin", "http://localhost:9324") }, 403},
		"another host":   {func(r *http.Request) { r.Host = "rebound.example" }, 403},
		"another method": {func(r *http.Request) { r.Method = http.MethodGet }, 405},
		"large":          {func(r *http.Request) { r.ContentLength = MaxBody + 1 }, 413},
		"as it should":   {func(*http.Request) {}, 200},
	} {
		r := newRequest(t.Context(), "x", `{"Task":"a","Paused":true}`)
		r.Header.Set("X-Amz-Target", registryPrefix+"SetPaused")
		c.change(r)
		w := serve(h, r)
		if w.Code != c.status {
			t.Errorf("%s: status %d %s, want %d", name, w.Code, w.Body, c.status)
		}
	}
}

func FuzzRegistry(f *testing.F) {
	h := newHandler(f, nil)
	mustCall(f, h, "CreateQueue", `{"QueueName":"jobs"}`)
	for action := range registryActions() {
		f.Add(action, `{"Queue":"jobs","Id":"a","Task":"a","AtMilliseconds":1,"Message":{"MessageBody":"x","DelaySeconds":1}}`)
		f.Add(action, `{"Name":"l","OldVersion":"","Next":{"Version":"v","Term":1,"DurationMilliseconds":-1},"Tasks":["a"],"Paused":true}`)
	}
	f.Fuzz(func(t *testing.T, action, body string) {
		w := callRegistry(t, h, action, body)
		if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s: status %d %s", action, body, w.Code, w.Body)
		}
	})
}
