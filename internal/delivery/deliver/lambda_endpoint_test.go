package deliver

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"tendril/internal/aws"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

type endpoint struct {
	answer func(w http.ResponseWriter, event events.SQSEvent)

	mu  sync.Mutex
	ran map[string]int
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var event events.SQSEvent
	if r.Method != http.MethodPost || r.URL.EscapedPath() != "/2015-03-31/functions/resize/invocations" ||
		json.NewDecoder(r.Body).Decode(&event) != nil ||
		r.Header.Get("X-Amz-Invocation-Type") != "RequestResponse" || r.Header.Get("Authorization") == "" {
		http.Error(w, "no call of the function", http.StatusTeapot)
		return
	}
	e.mu.Lock()
	for _, record := range event.Records {
		e.ran[record.MessageId]++
	}
	e.mu.Unlock()
	e.answer(w, event)
}

func serveFunction(t testing.TB, answer func(http.ResponseWriter, events.SQSEvent),
	change ...func(*aws.LambdaOptions)) (*Lambda, *endpoint) {
	t.Helper()
	e := &endpoint{answer: answer, ran: map[string]int{}}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	opts := &aws.LambdaOptions{Function: "resize",
		Client: aws.Options{Region: "us-east-2", Profile: "test", Endpoint: server.URL}}
	for _, f := range change {
		f(opts)
	}
	return newFunction(t, opts), e
}

func newFunction(t testing.TB, opts *aws.LambdaOptions) *Lambda {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "credentials")
	if err := os.WriteFile(file, []byte("[test]\naws_access_key_id=AKIDEXAMPLE\naws_secret_access_key=none\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_SHARED_CREDENTIALS_FILE": file, "AWS_CONFIG_FILE": filepath.Join(dir, "none"),
		"AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ENDPOINT_URL":          "", "AWS_ENDPOINT_URL_LAMBDA": "", "AWS_CA_BUNDLE": "",
	} {
		t.(*testing.T).Setenv(name, value)
	}
	client, err := aws.OpenLambda(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	l, err := NewLambda(client, jobsARN, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func returning(payload string, functionError ...string) func(http.ResponseWriter, events.SQSEvent) {
	return func(w http.ResponseWriter, _ events.SQSEvent) {
		w.Header().Set("X-Amz-Executed-Version", "$LATEST")
		if len(functionError) > 0 {
			w.Header().Set("X-Amz-Function-Error", functionError[0])
		}
		io.WriteString(w, payload)
	}
}

func refusing(status int, code, members string, header ...string) func(http.ResponseWriter, events.SQSEvent) {
	return func(w http.ResponseWriter, _ events.SQSEvent) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Amzn-Errortype", code)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, `{"Type":"User","message":"Rate exceeded"`+members+`}`)
	}
}

func raw(answer string) func(http.ResponseWriter, events.SQSEvent) {
	return func(w http.ResponseWriter, _ events.SQSEvent) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		io.WriteString(c, answer)
		c.Close()
	}
}

func TestOutcomesOverHTTP(t *testing.T) {
	const cutOff = "connection closed before the response was complete; the function may have run"
	hold := make(chan struct{})
	for _, test := range []struct {
		name   string
		answer func(http.ResponseWriter, events.SQSEvent)
		want   string
		reason string
	}{
		{"success", returning(`{"batchItemFailures":[]}`), "DDD", ""},
		{"success of an unknowing function", returning(`"ok"`), "DDD", ""},
		{"success without a word", returning(``), "DDD", ""},
		{"success of Go's empty list", returning(`{"batchItemFailures":null}`), "DDD", ""},
		{"partial", returning(`{"batchItemFailures":[{"itemIdentifier":"b"}]}`), "DFD", "reported in batchItemFailures"},
		{"malformed", returning(`{"batchItemFailures":[{"itemIdentifier":"b"},{"itemIdentifier":""}]}`), "FFF",
			"batchItemFailures has an entry without an itemIdentifier"},
		{"of another batch", returning(`{"batchItemFailures":[{"itemIdentifier":"z"}]}`), "FFF",
			"batchItemFailures names a message that was not in the event"},
		{"an emulator's time-out", returning(`Task timed out after 3.00 seconds`), "FFF", "the function's reply is not JSON"},
		{"FunctionError", returning(`{"errorMessage":"secret","errorType":"KeyError"}`, "Unhandled"), "FFF",
			"the function failed with KeyError (unhandled)"},
		{"FunctionError with a report", returning(`{"batchItemFailures":[]}`, "Handled"), "FFF",
			"the function failed (handled)"},
		{"a function's time-out",
			returning(`{"errorType":"Sandbox.Timedout","errorMessage":"RequestId: 1 Error: Task timed out after 3.00 seconds"}`, "Unhandled"), "FFF", "the function timed out (unhandled)"},
		{"429", refusing(429, "TooManyRequestsException", `,"Reason":"CallerRateLimitExceeded"`, "Retry-After", "3"), "TTT",
			"HTTP 429 TooManyRequestsException CallerRateLimitExceeded: the function accepts no more requests for now"},
		{"413", refusing(413, "RequestTooLargeException", ""), "FFF",
			"HTTP 413 RequestTooLargeException: the event is too large for the function (store large bodies elsewhere and " +
				"send a reference)"},
		{"500", refusing(500, "ServiceException", ""), "TTT",
			"HTTP 500 ServiceException: the service cannot run the function for now"},
		{"502", refusing(502, "ResourceNotReadyException", ""), "TTT",
			"HTTP 502 ResourceNotReadyException: the service cannot run the function for now"},
		{"404", refusing(404, "ResourceNotFoundException:http://internal.amazon.com/", ""), "UUU",
			"HTTP 404 ResourceNotFoundException: function not found: check its name, its alias or version, the " +
				"account and the region"},
		{"403", refusing(403, "AccessDeniedException", ""), "UUU",
			"HTTP 403 AccessDeniedException: access denied: allow these credentials lambda:InvokeFunction on the function"},
		{"no Lambda", raw("HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found"), "UUU",
			"HTTP 404: no Lambda service responded: check the region and AWS_ENDPOINT_URL_LAMBDA"},
		{"redirected", raw("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
			"UUU", "HTTP 307: no Lambda service responded: check the region and AWS_ENDPOINT_URL_LAMBDA"},
		{"a cut refusal", raw("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 100\r\n\r\n{"), "TTT",
			"HTTP 429: the function accepts no more requests for now"},
		{"slow", func(http.ResponseWriter, events.SQSEvent) {
			<-hold
		}, "FFF", "no response in time; the function may be running"},
		{"slow in the middle", func(w http.ResponseWriter, _ events.SQSEvent) {
			io.WriteString(w, `{"batchItemFailures":`)
			w.(http.Flusher).Flush()
			<-hold
		}, "FFF", "no response in time; the function may be running"},
		{"cut before", raw(""), "FFF", cutOff},
		{"cut in the head", raw("HTTP/1.1 200 OK\r\n"), "FFF", cutOff},
		{"cut in the middle", raw("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}"), "FFF", cutOff},
		{"cut before an empty looking body", raw("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n"), "FFF", cutOff},
		{"cut between chunks", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"), "FFF", cutOff},
		{"a body without an end", raw("HTTP/1.0 200 OK\r\n\r\n"), "FFF", cutOff},
		{"an old server's body", raw("HTTP/1.0 200 OK\r\n\r\nnull"), "DDD", ""},
		{"no HTTP", raw("SSH-2.0-OpenSSH\r\n\r\n"), "FFF", "incomplete response; the function may have run"},
		{"without bounds", func(w http.ResponseWriter, _ events.SQSEvent) {
			io.WriteString(w, `"`+strings.Repeat("x", 8<<20)+`"`)
		}, "FFF", "incomplete response; the function may have run"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var e *endpoint
			var results []queue.Result
			isSlow := strings.HasPrefix(test.name, "slow")
			for limit := 300 * time.Millisecond; limit < time.Minute; limit *= 2 {
				var l *Lambda
				l, e = serveFunction(t, test.answer, func(o *aws.LambdaOptions) {
					if isSlow {
						o.Timeout = limit
					}
				})
				results = l.DeliverBatch(t.Context(), messages("a", "b", "c"))
				if !isSlow || results[0].Outcome != queue.Unreached { // the limit may end before the call is sent
					break
				}
			}
			if isSlow && results[0].Outcome != queue.Unreached {
				hold <- struct{}{}
			}
			if got := outcomes(results); got != test.want {
				t.Errorf("got %s, want %s: %q %v", got, test.want, results[0].Reason, results[0].Err)
			}
			for i, r := range results {
				if r.Outcome == queue.Done {
					continue
				}
				if test.name == "429" && r.RetryAfter != 3*time.Second {
					t.Errorf("retry after %v", r.RetryAfter)
				}
				if r.Reason != test.reason {
					t.Errorf("result %d: reason %q, want %q (%v)", i, r.Reason, test.reason, r.Err)
				}
			}
			wantRuns(t, e, test.name == "413", 3)
		})
	}
}

// wantRuns checks the number of messages sent. again allows a second, smaller event.
func wantRuns(t *testing.T, e *endpoint, again bool, messages int) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.ran) != messages {
		t.Errorf("%d messages were sent, want %d", len(e.ran), messages)
	}
	for id, n := range e.ran {
		if n != 1 && !again {
			t.Errorf("message %s was in %d events", id, n)
		}
	}
}

func TestEndpointUnreachable(t *testing.T) {
	l := newFunction(t, &aws.LambdaOptions{Function: "resize",
		Client: aws.Options{Region: "us-east-2", Profile: "test", Endpoint: "http://127.0.0.1:" + testpeer.FreePort(t)}})
	r := l.Deliver(t.Context(), message())
	if r.Outcome != queue.Unreached ||
		!strings.Contains(r.Reason,
			"connection refused; check the network, the region, the credentials and AWS_ENDPOINT_URL_LAMBDA") {
		t.Errorf("got %v %q", r.Outcome, r.Reason)
	}
}

func TestOneInvocationPerMessage(t *testing.T) {
	const rounds, senders = 150, 4
	var mu sync.Mutex
	vouched := map[string]bool{}
	l, e := serveFunction(t, func(w http.ResponseWriter, event events.SQSEvent) {
		fate := rand.IntN(10)
		mu.Lock()
		for _, r := range event.Records {
			vouched[r.MessageId] = fate < 5
		}
		mu.Unlock()
		switch fate {
		case 9:
			raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")(w, event)
		case 8:
			raw("")(w, event)
		case 7:
			refusing(429, "TooManyRequestsException", "")(w, event)
		case 6:
			returning(`{}`, "Unhandled")(w, event)
		case 5:
			returning(`{"batchItemFailures":[{}]}`)(w, event)
		case 4: // closes the connection after a complete response, without announcing it
			raw("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull")(w, event)
		default:
			returning(`null`)(w, event)
		}
	})
	var all sync.WaitGroup
	var results [senders][]queue.Result
	for s := range senders {
		all.Go(func() {
			for i := range rounds {
				results[s] = append(results[s],
					l.DeliverBatch(t.Context(), messages(fmt.Sprint(s, "-", i, "a"), fmt.Sprint(s, "-", i, "b")))...)
			}
		})
	}
	all.Wait()
	counts := map[queue.Outcome]int{}
	for s := range senders {
		for i, r := range results[s] {
			id := fmt.Sprint(s, "-", i/2, string("ab"[i%2]))
			counts[r.Outcome]++
			switch {
			case e.ran[id] > 1:
				t.Errorf("%s was in %d events", id, e.ran[id])
			case r.Outcome == queue.Done && !vouched[id]:
				t.Errorf("%s is done, but no function returned successfully for it", id)
			case r.Outcome == queue.Unreached && e.ran[id] > 0:
				t.Errorf("%s is unreached, and ran", id)
			}
		}
	}
	if counts[queue.Done] == 0 || counts[queue.Failed] == 0 || counts[queue.Throttled] == 0 {
		t.Errorf("outcomes %v", counts)
	}
}
