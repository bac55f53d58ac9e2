package acceptance

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"tendril/internal/aws"
	"tendril/internal/registry"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

const amazonTable = "tendril-registry"

// Unlike AWS, moto does not lock between evaluating a condition and writing, so calls are serialized.
func amazonPlace(t *testing.T, name string) *place {
	endpoint := oneAtATime(t, testpeer.Moto(t, "sqs", "dynamodb"))
	setCredentials()
	ctx := context.Background()
	table, err := aws.OpenTable(ctx, amazonTable, &aws.Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Create(ctx, nil); err != nil {
		t.Fatal(err)
	}
	sqs, err := aws.OpenSQS(ctx, &aws.Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	q, err := sqs.Create(ctx, name, fifoAttributes(name), nil)
	if err != nil {
		t.Fatal(err)
	}
	lease := func(ctx context.Context) (queue.Lease, error) { return registry.NewLeases(table).Read(ctx, leaseName) }
	runs := func(t *testing.T) []run { return receivedRuns(t, q) }
	return &place{endpoint: endpoint, queue: name, role: "amazon scheduler", term: 4 * time.Second, lease: lease,
		since: registry.NewSentRuns(table, scope, nil, nil).Since, runs: runs, twice: !queue.IsFIFO(name)}
}

func setCredentials() {
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"} {
		os.Setenv(k, v)
	}
}

func receivedRuns(t *testing.T, q *aws.Queue) (runs []run) {
	for _, m := range takeAll(t, q) {
		runs = append(runs, runOf(t, &m))
	}
	return runs
}

func takeAll(t *testing.T, q *aws.Queue) (all []queue.Message) {
	for empty := 0; empty < 3; {
		got, err := q.Receive(t.Context(),
			queue.ReceiveRequest{Max: queue.MaxBatch, Wait: new(time.Second), Visibility: new(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			empty++
			continue
		}
		receipts := make([]string, len(got))
		for i := range got {
			receipts[i] = got[i].ReceiptHandle
		}
		for _, err := range q.Delete(t.Context(), receipts) {
			if err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, got...)
	}
	return all
}

// oneAtATime reads each request and response completely, so that a paused client does not block others.
func oneAtATime(t *testing.T, endpoint string) string {
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	var turn sync.Mutex
	call := func(r *http.Request, body []byte) (*http.Response, []byte, error) {
		turn.Lock()
		defer turn.Unlock()
		out, err := http.NewRequest(r.Method, endpoint+r.URL.RequestURI(), bytes.NewReader(body))
		if err != nil {
			return nil, nil, err
		}
		out.Header, out.Host = r.Header, r.Host
		resp, err := transport.RoundTrip(out)
		if err != nil {
			return nil, nil, err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		return resp, answer, err
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		resp, answer, err := call(r, body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		w.Write(answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
