package acceptance

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"tendril/internal/testing/testpeer"
)

var workerlessQueues = []string{"payments", "submissions", "default"}

type arena struct {
	t        *testing.T
	sqs      *sqs.Client
	urls     map[string]string
	endpoint string

	// Shares are measured over sample messages. points is the tolerance in percentage points, at least four standard
	// deviations.
	sample, points int
	work           time.Duration

	// repeats means that the server may return a message to two concurrent receives. Only the first counts.
	repeats bool

	mu       sync.Mutex
	invoked  []invoked
	news     chan struct{}
	receives int
	// slow counts receives whose response was so late that the worker may have considered the queue empty.
	slow     int
	function string
}

type invoked struct {
	queue, body string
	at          time.Time
}

func eachPlace(t *testing.T, run func(t *testing.T, a *arena)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		_, started := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off")
		a := newArena(t, started.Endpoint)
		a.sample, a.points, a.work = 1500, 5, 10*time.Millisecond
		run(t, a)
	})
	t.Run("moto", func(t *testing.T) {
		t.Parallel()
		a := newArena(t, testpeer.Moto(t, "sqs"))
		// moto slows down to a hundred messages per second, so the function must be the bottleneck.
		a.sample, a.points, a.work = 600, 8, 60*time.Millisecond
		a.repeats = true
		run(t, a)
	})
}

func newArena(t *testing.T, endpoint string) *arena {
	a := &arena{t: t, sqs: client(endpoint), urls: map[string]string{}, news: make(chan struct{})}
	for _, name := range workerlessQueues {
		a.urls[name] = createQueue(t, a.sqs, name, nil)
	}
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
	proxy.ErrorLog = log.New(io.Discard, "", 0) // a stop aborts polls, which causes errors
	counter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".ReceiveMessage") {
			proxy.ServeHTTP(w, r)
			return
		}
		a.mu.Lock()
		a.receives++
		a.mu.Unlock()

		began := time.Now()
		proxy.ServeHTTP(w, r)

		if time.Since(began) > 200*time.Millisecond { // the worker waits at least 250 ms
			a.mu.Lock()
			a.slow++
			a.mu.Unlock()
		}
	}))
	t.Cleanup(counter.Close)
	a.endpoint = counter.URL
	return a
}

func (a *arena) up(args ...string) *process {
	a.t.Helper()
	lambda := httptest.NewServer(http.HandlerFunc(a.invoke))
	a.t.Cleanup(lambda.Close)
	env := []string{"AWS_ENDPOINT_URL_SQS=" + a.endpoint, "AWS_ENDPOINT_URL_LAMBDA=" + lambda.URL,
		"TENDRIL_CONSOLE=127.0.0.1:0", "TENDRIL_CLOUDWATCH=off"}
	p, _ := startWith(a.t, env, append([]string{"up"}, args...)...)
	return p
}

func (a *arena) invoke(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Amz-Invocation-Type") == "DryRun" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/configuration") {
		w.Write([]byte(`{"Timeout":3}`))
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // a test has ended and killed tendril
	}
	var event struct {
		Records []struct {
			Body      string `json:"body"`
			SourceARN string `json:"eventSourceARN"`
		}
	}
	path := strings.Split(r.URL.Path, "/")
	if err := json.Unmarshal(body, &event); err != nil || len(path) != 5 {
		a.t.Errorf("%s was called with %.200q", r.URL.Path, body)
	}
	a.mu.Lock()
	a.function = path[3]
	for _, m := range event.Records {
		queue := m.SourceARN[strings.LastIndexByte(m.SourceARN, ':')+1:]
		had := func(i invoked) bool { return i.queue == queue && i.body == m.Body }
		if !a.repeats || !slices.ContainsFunc(a.invoked, had) {
			a.invoked = append(a.invoked, invoked{queue, m.Body, time.Now()})
		}
	}
	close(a.news)
	a.news = make(chan struct{})
	a.mu.Unlock()
	time.Sleep(a.work)
	w.Write([]byte("null"))
}

func (a *arena) fill(n int) {
	a.t.Helper()
	for _, name := range workerlessQueues {
		for first := 0; first < n; first += 10 {
			batch := &sqs.SendMessageBatchInput{QueueUrl: new(a.urls[name])}
			for i := first; i < min(n, first+10); i++ {
				batch.Entries = append(batch.Entries,
					types.SendMessageBatchRequestEntry{Id: new(fmt.Sprint(i)), MessageBody: new(fmt.Sprintf("%s %d", name, i))})
			}
			if _, err := a.sqs.SendMessageBatch(a.t.Context(), batch); err != nil {
				a.t.Fatal(err)
			}
		}
	}
}

func (a *arena) await(n int) []invoked {
	a.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		a.mu.Lock()
		seen, news := a.invoked, a.news
		a.mu.Unlock()
		if len(seen) >= n {
			return seen
		}
		select {
		case <-news:
		case <-deadline:
			a.t.Fatalf("only %d of %d messages reached the function", len(seen), n)
		}
	}
}

func shares(list []invoked) map[string]int {
	count := map[string]int{}
	for _, i := range list {
		count[i.queue]++
	}
	return count
}

func (a *arena) everyOnce(n int) {
	a.t.Helper()
	seen := map[string]int{}
	for _, i := range a.await(3 * n) {
		seen[i.body]++
	}
	if len(seen) != 3*n || len(a.invoked) != 3*n {
		a.t.Errorf("%d different messages of %d in %d invocations", len(seen), 3*n, len(a.invoked))
	}
}

func TestWorkerlessWeights(t *testing.T) { // not parallel, because it measures shares
	eachPlace(t, func(t *testing.T, a *arena) {
		a.fill(a.sample * 2 / 3) // half of the sample will come from payments
		a.up("--function=my-function", "--queues=payments:3,submissions:2,default:1", "--poll-for=10", "--sleep=0",
			"-concurrency=4")
		full := a.await(a.sample)[:a.sample]
		got := shares(full)
		for name, want := range map[string]float64{"payments": 50, "submissions": 100. / 3, "default": 100. / 6} {
			if share := 100 * float64(got[name]) / float64(len(full)); math.Abs(share-want) > float64(a.points) {
				t.Errorf("%s has %.1f %%, want %.1f", name, share, want)
			}
		}
		t.Logf("of the first %d: %v", len(full), got)
		if a.function != "my-function" {
			t.Errorf("the function %s was invoked", a.function)
		}
	})
}

func TestWorkerlessEqualWeights(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, a *arena) {
		a.fill(a.sample / 2)
		a.up("--function=my-function", "--queues=payments:1,submissions:1,default:1", "-concurrency=4")
		got := shares(a.await(a.sample)[:a.sample])
		for name, n := range got {
			if share := 100 * float64(n) / float64(a.sample); math.Abs(share-100./3) > float64(a.points) {
				t.Errorf("%s has %.1f %%: %v", name, share, got)
			}
		}
	})
}

func TestWorkerlessStrictOrder(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, a *arena) {
		a.fill(100)
		a.work *= 4 // the function is slower than receives, even on a busy machine
		a.up("--function=my-function", "--queues=payments,submissions,default", "-concurrency=5")
		list := a.await(300)

		// Up to five messages are on their way to the function and may overtake each other. While the response to a
		// receive is late, the next queue gets the five slots.
		a.mu.Lock()
		early := 5 * (1 + a.slow)
		a.mu.Unlock()
		if n := 100 - shares(list[:100])["payments"]; n > early {
			t.Errorf("%d of the first 100 messages are of other queues than payments, at most %d expected", n, early)
		}
		if n := shares(list[:200])["default"]; n > early {
			t.Errorf("%d of the first 200 messages are of default, at most %d expected", n, early)
		}
		a.everyOnce(100)
	})
}

func TestWorkerlessIdle(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, a *arena) {
		a.up("--function=my-function", "--queues=payments:3,submissions:2,default:1", "--poll-for=10", "--sleep=0",
			"--concurrency=50")
		time.Sleep(2 * time.Second)
		a.mu.Lock()
		before := a.receives
		a.mu.Unlock()
		time.Sleep(20 * time.Second) // two polls of ten seconds
		a.mu.Lock()
		polls := a.receives - before
		a.mu.Unlock()
		if polls > 6+3 { // up to three more may just have ended
			t.Errorf("%d receives in 20 s of three idle queues that poll for 10 s", polls)
		}
		for i, name := range []string{"default", "payments", "submissions"} {
			sent := time.Now()
			if _, err := a.sqs.SendMessage(t.Context(),
				&sqs.SendMessageInput{QueueUrl: new(a.urls[name]), MessageBody: new("now")}); err != nil {
				t.Fatal(err)
			}
			got := a.await(i + 1)[i]
			t.Logf("a message on %s reached the function after %v", name, got.at.Sub(sent).Round(time.Millisecond))
			if wait := got.at.Sub(sent); wait > 5*time.Second || got.queue != name {
				t.Errorf("a message on %s reached the function after %s, of %s: others' polls take 10 s", name, wait, got.queue)
			}
		}
	})
}
