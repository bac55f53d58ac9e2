package acceptance

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
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
		send(t, w.Client, &sqs.SendMessageInput{QueueUrl: new(w.urls[workerlessQueues[i%2]]), MessageBody: new("300ms")})
	}
	eventually(t, "all are done", func() bool {
		bodies, _ := w.f.seen()
		return count(bodies, "300ms") == 8
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
	run := func(t *testing.T, queues, concurrency string) (*workerless, *process) {
		w := newWorkerless(t)
		w.f.work = 5 * time.Millisecond
		for _, name := range workerlessQueues {
			w.fill(t, name, n)
		}
		return w, w.start(t, []string{"TENDRIL_CLOUDWATCH=off"}, "--queues="+queues, "--concurrency="+concurrency, "--delete-linger=0s")
	}
	t.Run("strict", func(t *testing.T) {
		t.Parallel()
		w, _ := run(t, "payments,submissions,default", "2")
		_, queues := w.f.awaitSeen(t, n+n/2)
		row(t, "E4", func(t *testing.T) {
			if first := count(queues[:n-2], "payments"); first != n-2 {
				t.Errorf("of the first %d invocations %d are of the first queue", n-2, first)
			}
		})
		// This message arrives while messages of the second queue are in flight.
		send(t, w.Client, &sqs.SendMessageInput{QueueUrl: new(w.urls["payments"]), MessageBody: new("urgent")})
		w.f.mu.Lock()
		sent := len(w.f.bodies)
		w.f.mu.Unlock()
		bodies, queues := w.f.awaitSeen(t, 3*n+1)
		row(t, "E9", func(t *testing.T) {
			if at := slices.Index(bodies, "urgent"); at < 0 || at > sent+20 {
				t.Errorf("the urgent message was number %d, and %d were done when it was there", at, sent)
			}
		})
		row(t, "E8", func(t *testing.T) {
			if last := count(queues[len(queues)-n/2:], "default"); last < n/2-2 {
				t.Errorf("of the last %d invocations %d are of the last queue", n/2, last)
			}
		})
	})
	t.Run("weights", func(t *testing.T) {
		t.Parallel()
		w, _ := run(t, "payments:3,submissions:2,default:1", "2")
		_, queues := w.f.awaitSeen(t, 120)
		row(t, "E5", func(t *testing.T) {
			for name, want := range map[string]int{"payments": 60, "submissions": 40, "default": 20} {
				if got := count(queues[:120], name); got < want-12 || got > want+12 {
					t.Errorf("%s has %d of the first 120, want %d", name, got, want)
				}
			}
		})
	})
	t.Run("equal", func(t *testing.T) {
		t.Parallel()
		w, _ := run(t, "payments:1,submissions:1,default:1", "1")
		_, queues := w.f.awaitSeen(t, 150)
		queues = queues[:150]
		row(t, "E6", func(t *testing.T) {
			for _, name := range workerlessQueues {
				if got := count(queues, name); got < 38 || got > 62 {
					t.Errorf("%s has %d of the first 150, want 50", name, got)
				}
			}
		})
		row(t, "E9", func(t *testing.T) {
			longest, run := 0, 0
			for i := range queues {
				if run++; i > 0 && queues[i] != queues[i-1] {
					run = 1
				}
				longest = max(longest, run)
			}
			if longest > 6 {
				t.Errorf("the worker stayed with one queue for %d messages", longest)
			}
		})
		row(t, "E7", func(t *testing.T) {
			orders := map[string]bool{}
			for i := 0; i+3 <= len(queues); i += 3 {
				orders[strings.Join(queues[i:i+3], " ")] = true
			}
			if len(orders) < 4 {
				t.Errorf("there are %d orders of the queues in 50 rounds: %v", len(orders), orders)
			}
		})
	})
}

func TestSentencesWorkerlessIdle(t *testing.T) {
	t.Parallel()
	gaps := func(t *testing.T, w *workerless) (longest time.Duration, calls []queueCall) {
		time.Sleep(7 * time.Second)
		calls = w.made("ReceiveMessage")
		for i := 1; i < len(calls); i++ {
			longest = max(longest, calls[i].at.Sub(calls[i-1].at))
		}
		return longest, calls
	}
	t.Run("polls", func(t *testing.T) {
		t.Parallel()
		w := newWorkerless(t)
		p := w.start(t, []string{"TENDRIL_CLOUDWATCH=off"}, "--queues=payments,submissions,default", "--poll-for=1", "--sleep=0")
		pause, calls := gaps(t, w)
		row(t, "E11", func(t *testing.T) {
			if len(calls) == 0 {
				t.Error("no poll has ended")
			}
			for _, c := range calls {
				if c.number("WaitTimeSeconds") != 1 {
					t.Errorf("a receive waits %v s", c.number("WaitTimeSeconds"))
				}
			}
		})
		row(t, "E25", func(t *testing.T) {
			if len(calls) < 9 || pause > 1500*time.Millisecond {
				t.Errorf("%d receives, the longest pause is %v", len(calls), pause)
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
		pause, _ := gaps(t, w)
		row(t, "E12", func(t *testing.T) {
			between(t, "the longest pause between receives", pause, 1900*time.Millisecond, 4*time.Second)
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
	cloudWatch := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, string(body))
	}))
	t.Cleanup(cloudWatch.Close)
	w.fill(t, "payments", 2)
	p := w.start(t, []string{"AWS_ENDPOINT_URL_CLOUDWATCH=" + cloudWatch.URL}, "--queues=payments,submissions,default",
		"--name=my-app-staging", "--metrics-interval=2")
	w.f.awaitSeen(t, 2)
	p.await(t, "both are settled", func(event) bool {
		return p.count(func(e event) bool { return e.Outcome == "done" }) == 2
	})
	time.Sleep(4500 * time.Millisecond) // two reporting intervals
	mu.Lock()
	n, all := len(calls), strings.Join(calls, "\n")
	mu.Unlock()
	row(t, "E18", func(t *testing.T) {
		for _, c := range calls {
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
		if n < 2 {
			t.Errorf("%d calls in two intervals, of which the second was idle", n)
		}
	})
	row(t, "E20", func(t *testing.T) {
		if n < 1 || n > 3 {
			t.Errorf("%d calls in two intervals of 2 s", n)
		}
	})
}
