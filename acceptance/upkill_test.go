package acceptance

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"tendril/internal/testing/testpeer"
)

type recorder struct {
	*httptest.Server
	work time.Duration

	mu      sync.Mutex
	posts   map[string]int
	done    map[string]int
	now     int
	most    int
	aborted int
	news    chan struct{}
}

func newRecorder(t *testing.T, work time.Duration) *recorder {
	r := &recorder{work: work, posts: map[string]int{}, done: map[string]int{}, news: make(chan struct{}, 1)}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) serve(w http.ResponseWriter, req *http.Request) {
	id := req.Header.Get("X-Aws-Sqsd-Msgid")
	io.Copy(io.Discard, req.Body)
	r.mu.Lock()
	r.posts[id]++
	r.now++
	r.most = max(r.most, r.now)
	r.mu.Unlock()
	select {
	case <-time.After(r.work):
		r.mu.Lock()
		r.done[id]++
	case <-req.Context().Done():
		r.mu.Lock()
		r.aborted++
	}
	r.now--
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func (r *recorder) waitDone(t *testing.T, n int) {
	t.Helper()
	const patience = 2 * time.Minute // for the next message, because the machine may be busy
	before := 0
	for deadline := time.After(patience); ; {
		r.mu.Lock()
		have := len(r.done)
		r.mu.Unlock()
		if have >= n {
			return
		}
		if have > before {
			before, deadline = have, time.After(patience)
		}
		select {
		case <-r.news:
		case <-deadline:
			t.Fatalf("%d of %d messages were answered, and no other within %s", have, n, patience)
		}
	}
}

func (r *recorder) repeats() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, posts := range r.posts {
		n += posts - 1
	}
	return n
}

// Only messages in flight during a kill may be posted twice.
func TestKilledEnvironmentLosesNothing(t *testing.T) {
	const connections = 10
	resume(t)
	kills, per := testpeer.Size(10, 200), 300
	if testing.Short() {
		kills, per = 3, 100
	}
	app := newRecorder(t, 20*time.Millisecond) // even a busy disk then writes deletes of acknowledged messages
	dir := t.TempDir()
	up := func() (*process, event) {
		return start(t, "up", "--data-dir", dir, "--name", "jobs", "--target", app.URL, "--listen", "127.0.0.1:0",
			"--console", "off",
			"--http-connections", fmt.Sprint(connections), "--visibility-timeout", "2", "--max-retries", "100")
	}
	p, started := up()
	sent := 0
	for range kills {
		sendMany(t, client(started.Endpoint), started.QueueURL, per)
		sent += per
		app.waitDone(t, sent-per+per/10+rand.IntN(per/2))
		p.kill()
		p, started = up()
	}
	app.waitDone(t, sent)
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d after TERM", code)
	}
	repeats := app.repeats()
	report(t, "%d messages over %d kills: lost 0, posted twice %d (at most %d in flight at a kill), most at once %d",
		sent, kills, repeats, connections, app.most)
	if bound := kills * 2 * connections; repeats > bound {
		t.Errorf("%d POSTs were repeats, more than the %d that could be in flight", repeats, bound)
	}
	if app.most > connections {
		t.Errorf("%d POSTs at once, allowed are %d", app.most, connections)
	}
}

func TestTermUnderLoadLosesNothing(t *testing.T) {
	resume(t)
	stops, per := testpeer.Size(5, 100), 200
	if testing.Short() {
		stops = 2
	}
	app := newRecorder(t, 20*time.Millisecond)
	dir := t.TempDir()
	sent := 0
	for i := range stops {
		p, started := start(t, "up", "--data-dir", dir, "--name", "jobs", "--target", app.URL, "--listen", "127.0.0.1:0",
			"--console", "off",
			"--http-connections", "20")
		sendMany(t, client(started.Endpoint), started.QueueURL, per)
		sent += per
		if i == stops-1 {
			app.waitDone(t, sent)
		} else {
			app.waitDone(t, sent-per+1+rand.IntN(per/2))
		}
		if code := p.terminate(t); code != 0 {
			t.Fatalf("exit status %d after TERM", code)
		}
	}
	if app.aborted > 0 || app.repeats() > 0 {
		t.Errorf("%d POSTs were cut off, %d repeated; both should be 0", app.aborted, app.repeats())
	}
	report(t, "%d messages over %d stops under load: lost 0, cut off %d, repeated %d", sent, stops, app.aborted,
		app.repeats())
}

func sendMany(t *testing.T, c *sqs.Client, queueURL string, n int) {
	t.Helper()
	for from := 0; from < n; from += 10 {
		in := &sqs.SendMessageBatchInput{QueueUrl: &queueURL}
		for i := from; i < min(from+10, n); i++ {
			in.Entries = append(in.Entries,
				types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)),
					MessageBody: aws.String(fmt.Sprintf("job %d", i))})
		}
		out, err := c.SendMessageBatch(t.Context(), in)
		if err != nil || len(out.Failed) > 0 {
			t.Fatalf("sending: %v", err)
		}
	}
}
