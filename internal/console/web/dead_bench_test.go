package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/console"
	"tendril/queue"
)

func BenchmarkDeadLettersPage(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			server, store := manyDeadLetters(b, n)
			get := func(unit, query string) {
				var took []time.Duration
				for range 7 {
					r := httptest.NewRequest(http.MethodGet, "http://localhost/dead?queue=jobs-dead"+query, nil)
					r.Header.Set("Authorization", "Bearer "+ownersToken)
					w, begun := httptest.NewRecorder(), time.Now()
					server.ServeHTTP(w, r)
					took = append(took, time.Since(begun))
					if rows := strings.Count(w.Body.String(), `<tr id="m-`); w.Code != http.StatusOK || rows > pageSize {
						b.Fatalf("%d with %d rows", w.Code, rows)
					}
					b.ReportMetric(float64(w.Body.Len())/1024, unit+"-KiB")
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, unit+"-ms")
			}
			for b.Loop() {
				get("page", "")
				get("reason", "&reason=HTTP+422+failure+B")
				get("text", "&match=number+7")
				get("attribute", "&attribute=tenant%3Da")
				get("nothing", "&match=is+nowhere")
				begun := time.Now()
				_, err := store.StartMoveTask(b.Context(), broker.MoveRequest{Source: store.ARN("jobs-dead"),
					Destination: store.ARN("jobs")})
				for err == nil {
					var tasks []broker.MoveTask
					if tasks, err = store.MoveTasks(store.ARN("jobs-dead"), 1); err == nil && tasks[0].Status != broker.MoveRunning {
						if tasks[0].Moved != int64(n) {
							b.Fatalf("%+v", tasks[0])
						}
						break
					}
					<-time.After(time.Millisecond)
				}
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(n)/time.Since(begun).Seconds(), "redriven/s")
			}
		})
	}
}

// mostDying is the maximum number of messages dead-lettered by failing. Others are sent to the dead-letter queue
// directly.
const mostDying = 100_000

func manyDeadLetters(b *testing.B, n int) (*console.Server, *broker.Broker) {
	store, err := broker.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	if err := store.CreateQueue(b.Context(), "jobs-dead", nil, nil); err != nil {
		b.Fatal(err)
	}
	if err := store.CreateQueue(b.Context(), "jobs", map[string]string{"RedrivePolicy": fmt.Sprintf(
		`{"deadLetterTargetArn":%q,"maxReceiveCount":1}`, store.ARN("jobs-dead"))}, nil); err != nil {
		b.Fatal(err)
	}
	for i := 0; i < n; i += queue.MaxBatch {
		batch := make([]queue.Outgoing, queue.MaxBatch)
		for j := range batch {
			batch[j] = queue.Outgoing{Body: fmt.Sprintf(`{"order": "number %d", "text": %q}`, i+j, strings.Repeat("x", 150)),
				Attributes: []queue.Attribute{{Name: "tenant", Type: "String", Value: string(rune('a' + j))}}}
		}
		if i >= mostDying {
			if _, err := store.Queue("jobs-dead").Send(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			continue
		}
		sent, err := store.Queue("jobs").Send(b.Context(), batch)
		now := time.Duration(0)
		for range 2 { // the second receive moves them to the dead-letter queue
			if err == nil {
				_, err = store.Queue("jobs").Receive(b.Context(),
					queue.ReceiveRequest{Max: len(batch), Wait: &now, Visibility: &now})
			}
		}
		if err != nil {
			b.Fatal(err)
		}
		for j := range sent {
			store.RecordAttempt("jobs", sent[j].ID, broker.Attempt{At: time.Now(), Outcome: "failed", Status: 422,
				Answer: "failure " + string(rune('A'+j%4))})
		}
		if i%5000 == 0 {
			if _, err := store.DeadLetterReasons(b.Context(), "jobs-dead"); err != nil {
				b.Fatal(err)
			}
		}
	}
	if l, err := store.Ledger("jobs-dead"); err != nil || l.Live != int64(n) {
		b.Fatal(l, err)
	}
	var server *console.Server
	pages := New(Options{Client: func(r *http.Request) *api.Client { return console.NewInProcessClient(server, r) }})
	server = console.New(&console.Options{Environment: "shop", Broker: store, Token: ownersToken,
		Handlers: console.Handlers{Pages: pages}, Status: func() api.Status { return api.Status{} }})
	b.Cleanup(server.Close)
	return server, store
}
