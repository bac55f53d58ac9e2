package environment

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"tendril/broker"
	"tendril/internal/sqsapi"
	"tendril/queue"
)

func TestLookingForARegistryHoldsUpNoDelivery(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]http.HandlerFunc{
		"an SQS error": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusBadRequest)
			w.Write([]byte(`{"__type":"com.amazonaws.sqs#InvalidAddress","message":"The address is not valid for this endpoint."}`))
		},
		"no answer": func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // the server notices a closed connection only after it has read the body
			<-r.Context().Done()
		},
		"nonsense": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("\x00nonsense")) },
		"trouble":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := broker.Open(t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close() })
			if err := b.CreateQueue(t.Context(), "jobs", nil, nil); err != nil {
				t.Fatal(err)
			}
			serve := sqsapi.New(b, &sqsapi.Options{RegistryToken: os.Getenv("TENDRIL_REGISTRY_TOKEN")})
			t.Cleanup(serve.Stop)
			var willing atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if target := r.Header.Get("X-Amz-Target"); !strings.HasPrefix(target, "AmazonSQS.") && !willing.Load() {
					refuse(w, r)
					return
				}
				serve.ServeHTTP(w, r)
			}))
			t.Cleanup(func() {
				server.CloseClientConnections() // a new connection may still wait ten seconds for its server's proof
				server.Close()
			})
			posted := make(chan struct{}, 10)
			app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posted <- struct{}{} }))
			t.Cleanup(app.Close)
			if _, err := b.Queue("jobs").Send(t.Context(), []queue.Outgoing{{Body: "work"}}); err != nil {
				t.Fatal(err)
			}
			r := run(t, map[string]string{"queue-url": server.URL + "/000000000000/jobs", "endpoint-url": server.URL,
				"region": "us-east-1",
				"target": app.URL, "cron": writeTasks(t, minutely)}, nil)
			<-posted
			if name == "an SQS error" || name == "nonsense" {
				eventually(t, "the decision", func() bool { return !searching(r) })
			} else if !searching(r) {
				t.Error("the search ended without a response")
			} else {
				willing.Store(true)
				eventually(t, "the tasks scheduled", func() bool { return r.cron.tasks.Off() == "" })
			}
			if err := r.end(); err != nil {
				t.Errorf("the end: %v", err)
			}
		})
	}
}

func searching(r *running) bool { return strings.Contains(r.cron.tasks.Off(), "unknown whether") }
