package acceptance

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

type function struct {
	*httptest.Server
	mu        sync.Mutex
	events    []string
	bodies    []string
	queues    []string
	now, most int
	work      time.Duration
}

func newFunction(t *testing.T) *function {
	f := &function{}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/configuration") {
		w.Write([]byte(`{"Timeout":3}`))
		return
	}
	if r.Header.Get("X-Amz-Invocation-Type") == "DryRun" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	payload, _ := io.ReadAll(r.Body)
	var event struct {
		Records []struct {
			Body      string `json:"body"`
			SourceARN string `json:"eventSourceARN"`
		}
	}
	json.Unmarshal(payload, &event)
	f.mu.Lock()
	f.events = append(f.events, string(payload))
	f.now++
	f.most = max(f.most, f.now)
	work, failed := f.work, false
	for _, record := range event.Records {
		f.bodies = append(f.bodies, record.Body)
		f.queues = append(f.queues, record.SourceARN[strings.LastIndexByte(record.SourceARN, ':')+1:])
		failed = failed || record.Body == "fail"
		if d, err := time.ParseDuration(record.Body); err == nil {
			work = d
		}
	}
	f.mu.Unlock()
	time.Sleep(work)
	f.mu.Lock()
	f.now--
	f.mu.Unlock()
	if failed {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		w.Write([]byte(`{"errorMessage":"no such customer","errorType":"LookupError"}`))
		return
	}
	w.Write([]byte("null"))
}

func (f *function) seen() (bodies, queues []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.bodies), slices.Clone(f.queues)
}

func (f *function) awaitSeen(t *testing.T, n int) (bodies, queues []string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d messages reached the function", n), func() bool {
		bodies, queues = f.seen()
		return len(bodies) >= n
	})
	return bodies, queues
}

type workerless struct {
	*watchedQueue
	f    *function
	urls map[string]string
}

func newWorkerless(t *testing.T) *workerless {
	q := watchQueue(t, "payments", nil)
	w := &workerless{watchedQueue: q, f: newFunction(t), urls: map[string]string{"payments": q.url}}
	for _, name := range workerlessQueues[1:] {
		w.urls[name] = createQueue(t, q.Client, name, nil)
	}
	return w
}

func (w *workerless) start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	env = append([]string{"AWS_ENDPOINT_URL_SQS=" + w.server, "AWS_ENDPOINT_URL_LAMBDA=" + w.f.URL, "TENDRIL_CONSOLE=127.0.0.1:0"},
		env...)
	p, _ := startWith(t, env, append([]string{"up", "--function=my-function"}, args...)...)
	return p
}

func (w *workerless) fill(t *testing.T, queue string, n int) {
	t.Helper()
	for first := 0; first < n; first += 10 {
		var entries []types.SendMessageBatchRequestEntry
		for i := first; i < min(n, first+10); i++ {
			entries = append(entries, types.SendMessageBatchRequestEntry{Id: new(strconv.Itoa(i)), MessageBody: new(fmt.Sprint(queue, " ", i))})
		}
		if _, err := w.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: new(w.urls[queue]), Entries: entries}); err != nil {
			t.Fatal(err)
		}
	}
}

func count[T comparable](list []T, wanted T) (n int) {
	for _, v := range list {
		if v == wanted {
			n++
		}
	}
	return n
}

func TestSentencesWorkerlessEvents(t *testing.T) {
	t.Parallel()
	w := newWorkerless(t)
	id := send(t, w.Client, &sqs.SendMessageInput{QueueUrl: new(w.urls["payments"]), MessageBody: new("Test message."),
		MessageAttributes: map[string]types.MessageAttributeValue{"tenant": text("blue")}})
	p := w.start(t, []string{"WORKERLESS_CONCURRENCY=3", "TENDRIL_CLOUDWATCH=off"}, "--queues=payments,submissions,default",
		"--error-visibility-timeout=600")
	w.f.awaitSeen(t, 1)
	w.f.mu.Lock()
	payload := w.f.events[0]
	w.f.mu.Unlock()
	var records map[string][]map[string]any
	if err := json.Unmarshal([]byte(payload), &records); err != nil || len(records["Records"]) != 1 {
		t.Fatalf("the event is %s", payload)
	}
	record := records["Records"][0]
	row(t, "E1", func(t *testing.T) {
		for _, name := range workerlessQueues[1:] {
			send(t, w.Client, &sqs.SendMessageInput{QueueUrl: new(w.urls[name]), MessageBody: new("of " + name)})
		}
		bodies, queues := w.f.awaitSeen(t, 3)
		for _, name := range workerlessQueues[1:] {
			if count(bodies, "of "+name) != 1 || count(queues, name) != 1 {
				t.Errorf("the function got %v of %v", bodies, queues)
			}
		}
	})
	row(t, "E13", func(t *testing.T) {
		var names []string
		for name := range record {
			names = append(names, name)
		}
		slices.Sort(names)
		want := "attributes awsRegion body eventSource eventSourceARN md5OfBody md5OfMessageAttributes messageAttributes messageId receiptHandle"
		attributes, _ := record["attributes"].(map[string]any)
		if got := strings.Join(names, " "); got != want || record["messageId"] != id || record["body"] != "Test message." ||
			attributes["ApproximateReceiveCount"] != "1" || record["receiptHandle"] == "" {
			t.Errorf("the record is %s", payload)
		}
	})
	row(t, "E24", func(t *testing.T) {
		if got := fmt.Sprint(record["messageAttributes"]); !strings.Contains(got, "stringValue:blue") {
			t.Errorf("the attributes are %s", got)
		}
	})
	sum := md5.Sum([]byte("Test message."))
	expect(t, "E14", record["md5OfBody"], hex.EncodeToString(sum[:]))
	expect(t, "E15", fmt.Sprint(record["eventSource"], " ", record["eventSourceARN"], " ", record["awsRegion"]),
		"aws:sqs arn:aws:sqs:us-east-1:000000000000:payments us-east-1")
	row(t, "E16", func(t *testing.T) {
		failed := send(t, w.Client, &sqs.SendMessageInput{QueueUrl: new(w.urls["default"]), MessageBody: new("fail")})
		p.await(t, "the error is on standard output", func(e event) bool {
			return e.MessageID == failed && e.Outcome == "failed" && strings.Contains(e.raw, "no such customer")
		})
	})
	for i := range 8 {
		send(t, w.Client, &sqs.SendMessageInput{QueueUrl: new(w.urls[workerlessQueues[i%2]]), MessageBody: new("1s")})
	}
	eventually(t, "all are done", func() bool {
		bodies, _ := w.f.seen()
		return count(bodies, "1s") == 8
	})
	for _, id := range []string{"E2", "E3"} {
		row(t, id, func(t *testing.T) {
			if w.f.most != 3 {
				t.Errorf("%d invocations at once, want 3", w.f.most)
			}
		})
	}
}

func TestSentencesWorkerlessOrder(t *testing.T) {
	t.Parallel()
	const n = 90
	run := func(t *testing.T, queues, concurrency string) (w *workerless, stop func()) {
		w = newWorkerless(t)
		w.f.work = 5 * time.Millisecond
		for _, name := range workerlessQueues {
			w.fill(t, name, n)
		}
		p := w.start(t, []string{"TENDRIL_CLOUDWATCH=off"}, "--queues="+queues, "--concurrency="+concurrency, "--delete-linger=0s")
		return w, p.kill
	}
	t.Run("strict", func(t *testing.T) {
		t.Parallel()
		undisturbed(t, func(problem problems) {
			w, stop := run(t, "payments,submissions,default", "2")
			defer stop()
			_, queues := w.f.awaitSeen(t, n+n/2)
			first := count(queues[:n-2], "payments")
			problem.unless("E4", first == n-2, "of the first %d invocations %d are of the first queue", n-2, first)

			// This message arrives while messages of the second queue are in flight.
			send(t, w.Client, &sqs.SendMessageInput{QueueUrl: new(w.urls["payments"]), MessageBody: new("urgent")})
			bodies, _ := w.f.seen()
			sent := len(bodies)
			bodies, queues = w.f.awaitSeen(t, 3*n+1)
			at := slices.Index(bodies, "urgent")
			problem.unless("E9", at >= 0 && at <= sent+20,
				"the urgent message was number %d, and %d were done when it was there", at, sent)
			last := count(queues[len(queues)-n/2:], "default")
			problem.unless("E8", last >= n/2-2, "of the last %d invocations %d are of the last queue", n/2, last)
		})
	})
	t.Run("weights", func(t *testing.T) {
		t.Parallel()
		undisturbed(t, func(problem problems) {
			w, stop := run(t, "payments:3,submissions:2,default:1", "2")
			defer stop()
			_, queues := w.f.awaitSeen(t, 120)
			got := []int{count(queues[:120], "payments"), count(queues[:120], "submissions"), count(queues[:120], "default")}
			problem.unless("E5", near(got[0], 60) && near(got[1], 40) && near(got[2], 20),
				"the queues have %v of the first 120, want 60, 40 and 20", got)
		})
	})
	t.Run("equal", func(t *testing.T) {
		t.Parallel()
		undisturbed(t, func(problem problems) {
			w, stop := run(t, "payments:1,submissions:1,default:1", "1")
			defer stop()
			_, queues := w.f.awaitSeen(t, 150)
			queues = queues[:150]
			for _, name := range workerlessQueues {
				got := count(queues, name)
				problem.unless("E6", near(got, 50), "%s has %d of the first 150, want 50", name, got)
			}

			longest, run := 0, 0
			for i := range queues {
				if run++; i > 0 && queues[i] != queues[i-1] {
					run = 1
				}
				longest = max(longest, run)
			}
			problem.unless("E9", longest <= 6, "the worker stayed with one queue for %d messages", longest)

			orders := map[string]bool{}
			for i := 0; i+3 <= len(queues); i += 3 {
				orders[strings.Join(queues[i:i+3], " ")] = true
			}
			problem.unless("E7", len(orders) >= 4, "there are %d orders of the queues in 50 rounds: %v", len(orders), orders)
		})
	})
}

func near(got, want int) bool { return got >= want-12 && got <= want+12 }

// problems has a text for each row: the problem, or "".
type problems map[string]string

func (p problems) unless(row string, ok bool, format string, args ...any) {
	if !ok {
		p[row] = fmt.Sprintf(format, args...)
	} else if _, known := p[row]; !known {
		p[row] = ""
	}
}

// undisturbed measures up to three times: if only one of several processes is paused, a queue can seem empty, and others
// get its turns.
func undisturbed(t *testing.T, measure func(problem problems)) {
	t.Helper()
	var found problems
	for range 3 {
		found = problems{}
		measure(found)
		if !slices.ContainsFunc(slices.Collect(maps.Values(found)), func(text string) bool { return text != "" }) {
			break
		}
	}
	for id, text := range found {
		row(t, id, func(t *testing.T) {
			if text != "" {
				t.Error(text)
			}
		})
	}
}

func TestSentencesWorkerlessIdle(t *testing.T) {
	t.Parallel()
	// gaps returns the times between a queue's receives. A pause can only lengthen them.
	gaps := func(t *testing.T, w *workerless) (all []time.Duration, calls []queueCall) {
		t.Helper()
		eventuallyWithin(t, 5*time.Second+waitsFor(), "each queue was polled three times", func() bool {
			calls = w.made("ReceiveMessage")
			all = nil
			last := map[any]time.Time{}
			for _, c := range calls {
				if before, again := last[c.in["QueueUrl"]]; again {
					all = append(all, c.at.Sub(before))
				}
				last[c.in["QueueUrl"]] = c.at
			}
			return len(last) == len(workerlessQueues) && len(all) >= 2*len(workerlessQueues)
		})
		return all, calls
	}
	t.Run("polls", func(t *testing.T) {
		t.Parallel()
		w := newWorkerless(t)
		p := w.start(t, []string{"TENDRIL_CLOUDWATCH=off"}, "--queues=payments,submissions,default", "--poll-for=1", "--sleep=0")
		all, calls := gaps(t, w)
		row(t, "E11", func(t *testing.T) {
			for _, c := range calls {
				if c.number("WaitTimeSeconds") != 1 {
					t.Errorf("a receive waits %v s", c.number("WaitTimeSeconds"))
				}
			}
		})
		row(t, "E25", func(t *testing.T) {
			if shortest := slices.Min(all); shortest > 1500*time.Millisecond {
				t.Errorf("between two receives of a queue there are at least %v", shortest)
			}
		})
		row(t, "E23", func(t *testing.T) {
			resident, used := processUsage(t, p.cmd.Process.Pid)
			time.Sleep(2 * time.Second)
			_, later := processUsage(t, p.cmd.Process.Pid)
			if resident > 80<<20 || later-used > 300*time.Millisecond {
				t.Errorf("idle it holds %d MB, and used %v of 2 s", resident>>20, later-used)
			}
		})
	})
	t.Run("sleeps", func(t *testing.T) {
		t.Parallel()
		w := newWorkerless(t)
		w.start(t, []string{"TENDRIL_CLOUDWATCH=off"}, "--queues=payments,submissions,default", "--poll-for=1", "--sleep=2")
		all, _ := gaps(t, w)
		row(t, "E12", func(t *testing.T) {
			between(t, "the shortest time between two receives of a queue", slices.Min(all), 2900*time.Millisecond, 5*time.Second)
		})
	})
}

func processUsage(t *testing.T, pid int) (resident int64, used time.Duration) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	return pages * int64(os.Getpagesize()), time.Duration(user+system) * 10 * time.Millisecond
}

func TestSentencesWorkerlessMetrics(t *testing.T) {
	t.Parallel()
	w := newWorkerless(t)
	var mu sync.Mutex
	var calls []string
	var times []time.Time
	began := time.Now()
	cloudWatch := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, string(body))
		times = append(times, time.Now())
	}))
	t.Cleanup(cloudWatch.Close)
	w.fill(t, "payments", 2)
	p := w.start(t, []string{"AWS_ENDPOINT_URL_CLOUDWATCH=" + cloudWatch.URL}, "--queues=payments,submissions,default",
		"--name=my-app-staging", "--metrics-interval=2")
	w.f.awaitSeen(t, 2)
	p.await(t, "both are settled", func(event) bool {
		return p.count(func(e event) bool { return e.Outcome == "done" }) == 2
	})
	const reports = 3 // the last interval is idle
	sent := func() ([]string, []time.Time) {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(calls), slices.Clone(times)
	}
	for deadline := time.Now().Add(6*time.Second + waitsFor()); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if calls, _ := sent(); len(calls) >= reports {
			break
		}
	}
	reported, at := sent()
	n, all := len(reported), strings.Join(reported, "\n")
	row(t, "E18", func(t *testing.T) {
		for _, c := range reported {
			if !strings.Contains(c, "Workerless-my-app-staging") {
				t.Errorf("a call without the namespace: %q", c)
			}
		}
		if n == 0 {
			t.Error("nothing was sent")
		}
	})
	row(t, "E17", func(t *testing.T) {
		matches(t, all, "MessagesProcessed(.|\n)*payments|payments(.|\n)*MessagesProcessed")
	})
	row(t, "E26", func(t *testing.T) { matches(t, all, "Duration") })
	row(t, "E19", func(t *testing.T) {
		if n < reports {
			t.Errorf("%d calls in three intervals, of which the last was idle", n)
		}
	})
	row(t, "E20", func(t *testing.T) {
		if n < reports || at[n-1].Sub(began) < 2*reports*time.Second-time.Second {
			t.Errorf("%d calls at %v after the start at %v, one each 2 s", n, at, began)
		}
	})
}
