package acceptance

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"tendril/broker"
	"tendril/internal/testing/testpeer"
)

// TENDRIL_OUTAGE sets the duration, for example 10m.
func TestOutageBurnsNoReceives(t *testing.T) {
	long(t)
	t.Parallel()
	resume(t)
	const messages, connections = 10_000, 10
	outage := testpeer.Size(15*time.Second, 10*time.Minute)
	if d, err := time.ParseDuration(os.Getenv("TENDRIL_OUTAGE")); err == nil {
		outage = d
	}
	address, dir := "127.0.0.1:"+testpeer.FreePort(t), t.TempDir()
	p, started := start(t, "up", "--data-dir", dir, "--listen", "127.0.0.1:0", "--console", "off", "--name", "jobs",
		"--target", "http://"+address,
		"--http-connections", fmt.Sprint(connections), "--visibility-timeout", "1", "--max-retries", "3")
	c := client(started.Endpoint)
	preload(t, c, started.QueueURL, messages, func(i int) string { return fmt.Sprint(i) })
	time.Sleep(outage)
	total := 0
	p.terminate(t)
	for _, m := range stored(t, dir, "jobs") {
		total += m.ReceiveCount
	}
	report(t, "an outage of %v with %d messages waiting: %d receives", outage, messages, total)
	if total > connections {
		t.Errorf("%d receives during the outage, more than the %d that may be in flight", total, connections)
	}

	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("NOT RUN to its end: the port of the app was taken meanwhile: %v", err)
	}
	app := &httptest.Server{Listener: l,
		Config: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}}
	app.Start()
	t.Cleanup(app.Close)
	p, started = start(t, "up", "--data-dir", dir, "--listen", "127.0.0.1:0", "--console", "off", "--name", "jobs",
		"--target", "http://"+address, "--max-retries", "3")
	awaitEmpty(t, started)
	p.terminate(t)
	checkLedger(t, dir, messages)
}

func preload(t *testing.T, c *sqs.Client, url string, n int, body func(i int) string) {
	t.Helper()
	for first := 0; first < n; first += 10 {
		batch := &sqs.SendMessageBatchInput{QueueUrl: &url}
		for i := first; i < min(n, first+10); i++ {
			batch.Entries = append(batch.Entries,
				types.SendMessageBatchRequestEntry{Id: new(fmt.Sprint(i)), MessageBody: new(body(i))})
		}
		out, err := c.SendMessageBatch(t.Context(), batch)
		if err != nil || len(out.Failed) > 0 {
			t.Fatal(err, out)
		}
	}
}

func stored(t *testing.T, dir, name string) (all []broker.Stored) {
	t.Helper()
	store, err := broker.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for after := ""; ; {
		page, next, err := store.Browse(t.Context(), name, broker.BrowseRequest{After: after, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page...)
		if after = next; after == "" {
			return all
		}
	}
}
