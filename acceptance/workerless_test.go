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

	stop func() // stops the worker

	mu       sync.Mutex
	invoked  []invoked
	news     chan struct{}
	receives int
	open     int // receives without a response yet
	// slow counts receives whose response was so late that the worker may have considered the queue empty.
	slow     int
	function string
}

type invoked struct {
	queue, body string
	at          time.Time
}

// eachPlace runs a test that measures shares or delays up to three times, because a pause of a single process
// distorts them. run returns a problem, or "".
func eachPlace(t *testing.T, run func(a *arena) (problem string)) {
	place := func(name string, begin func(t *testing.T) *arena) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problem := ""
			for range 3 {
				a := begin(t)
				problem = run(a)
				a.stop()
				if problem == "" {
					return
				}
				t.Log(problem)
			}
			t.Error(problem)
		})
	}
	place("embedded", func(t *testing.T) *arena {
		_, started := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off")
		a := newArena(t, started.Endpoint)
		a.sample, a.points, a.work = 1500, 5, 10*time.Millisecond
		return a
	})
	place("moto", func(t *testing.T) *arena {
		a := newArena(t, testpeer.Moto(t, "sqs"))
		// moto slows down to a hundred messages per second, so the function must be the bottleneck.
		a.sample, a.points, a.work = 600, 8, 60*time.Millisecond
		a.repeats = true
		return a
	})
}

func newArena(t *testing.T, endpoint string) *arena {
	a := &arena{t: t, sqs: client(endpoint), urls: map[string]string{}, news: make(chan struct{}), stop: func() {}}
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
		a.open++
		a.mu.Unlock()

		began := time.Now()
		defer func() { // also after a stop, which aborts polls
			a.mu.Lock()
			defer a.mu.Unlock()
			a.open--
			if time.Since(began) > 200*time.Millisecond { // the worker waits at least 250 ms
				a.slow++
			}
		}()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(counter.Close)
	a.endpoint = counter.URL
	return a
}

func (a *arena) up(args ...string) {
	a.t.Helper()
	lambda := httptest.NewServer(http.HandlerFunc(a.invoke))
	a.t.Cleanup(lambda.Close)
	env := []string{"AWS_ENDPOINT_URL_SQS=" + a.endpoint, "AWS_ENDPOINT_URL_LAMBDA=" + lambda.URL,
		"TENDRIL_CONSOLE=127.0.0.1:0", "TENDRIL_CLOUDWATCH=off"}
	p, _ := startWith(a.t, env, append([]string{"up"}, args...)...)
	a.stop = p.kill
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
	const patience = 2 * time.Minute // for the next message, because moto is slow on a busy machine
	before := 0
	for deadline := time.After(patience); ; {
		a.mu.Lock()
		seen, news := a.invoked, a.news
		a.mu.Unlock()
		if len(seen) >= n {
			return seen
		}
		if len(seen) > before {
			before, deadline = len(seen), time.After(patience)
		}
		select {
		case <-news:
		case <-deadline:
			a.t.Fatalf("only %d of %d messages reached the function, and no other within %s", len(seen), n, patience)
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
	eachPlace(t, func(a *arena) (problem string) {
		a.fill(a.sample * 2 / 3) // half of the sample will come from payments
		a.up("--function=my-function", "--queues=payments:3,submissions:2,default:1", "--poll-for=10", "--sleep=0",
			"-concurrency=4")
		problem = a.checkShares(map[string]float64{"payments": 50, "submissions": 100. / 3, "default": 100. / 6})
		if a.function != "my-function" {
			a.t.Errorf("the function %s was invoked", a.function)
		}
		return problem
	})
}

func (a *arena) checkShares(percent map[string]float64) (problem string) {
	a.t.Helper()
	full := a.await(a.sample)[:a.sample]
	got := shares(full)
	a.t.Logf("of the first %d: %v", len(full), got)
	for name, want := range percent {
		if share := 100 * float64(got[name]) / float64(len(full)); math.Abs(share-want) > float64(a.points) {
			problem += fmt.Sprintf("%s has %.1f %%, want %.1f; ", name, share, want)
		}
	}
	return problem
}

func TestWorkerlessEqualWeights(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(a *arena) (problem string) {
		a.fill(a.sample / 2)
		a.up("--function=my-function", "--queues=payments:1,submissions:1,default:1", "-concurrency=4")
		return a.checkShares(map[string]float64{"payments": 100. / 3, "submissions": 100. / 3, "default": 100. / 3})
	})
}

func TestWorkerlessStrictOrder(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(a *arena) (problem string) {
		a.fill(100)
		a.work *= 4 // the function is slower than receives, even on a busy machine
		a.up("--function=my-function", "--queues=payments,submissions,default", "-concurrency=5")
		list := a.await(300)
		a.everyOnce(100)

		// Up to five messages are on their way to the function and may overtake each other. While the response to a
		// receive is late, the next queue gets the five slots.
		a.mu.Lock()
		early := 5 * (1 + a.slow)
		a.mu.Unlock()
		if n := 100 - shares(list[:100])["payments"]; n > early {
			problem = fmt.Sprintf("%d of the first 100 messages are of other queues than payments, at most %d expected; ", n, early)
		}
		if n := shares(list[:200])["default"]; n > early {
			problem += fmt.Sprintf("%d of the first 200 messages are of default, at most %d expected", n, early)
		}
		return problem
	})
}

func TestWorkerlessIdle(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(a *arena) (problem string) {
		a.up("--function=my-function", "--queues=payments:3,submissions:2,default:1", "--poll-for=10", "--sleep=0",
			"--concurrency=50")
		a.awaitPolls()
		time.Sleep(2 * time.Second)
		a.mu.Lock()
		before := a.receives
		a.mu.Unlock()
		time.Sleep(20 * time.Second) // two polls of ten seconds
		a.mu.Lock()
		polls := a.receives - before
		a.mu.Unlock()
		if polls > 6+3 { // up to three more may just have ended
			problem = fmt.Sprintf("%d receives in 20 s of three idle queues that poll for 10 s; ", polls)
		}

		for i, name := range []string{"default", "payments", "submissions"} {
			a.awaitPolls()
			sent := time.Now()
			if _, err := a.sqs.SendMessage(a.t.Context(),
				&sqs.SendMessageInput{QueueUrl: new(a.urls[name]), MessageBody: new("now")}); err != nil {
				a.t.Fatal(err)
			}
			got := a.await(i + 1)[i]
			wait := got.at.Sub(sent)
			a.t.Logf("a message on %s reached the function after %v", name, wait.Round(time.Millisecond))
			if wait > 5*time.Second || got.queue != name {
				problem += fmt.Sprintf("a message on %s reached the function after %s, of %s: others' polls take 10 s; ", name, wait,
					got.queue)
			}
		}
		return problem
	})
}

// awaitPolls waits until each queue has an open receive.
func (a *arena) awaitPolls() {
	a.t.Helper()
	eventually(a.t, "all queues are polled at once", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.open >= len(workerlessQueues)
	})
}
