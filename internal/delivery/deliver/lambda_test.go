package deliver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tendril/queue"
)

type Invocation = queue.Invocation

type function struct {
	answer func(n int, event events.SQSEvent, size int) (Invocation, error)
	check  error

	mu    sync.Mutex
	calls [][]string
}

func (f *function) Invoke(_ context.Context, payload []byte, _ func() bool) (Invocation, error) {
	var event events.SQSEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return Invocation{}, fmt.Errorf("an event that is not JSON: %w", err)
	}
	var ids []string
	for _, r := range event.Records {
		ids = append(ids, r.MessageId)
	}
	f.mu.Lock()
	f.calls = append(f.calls, ids)
	n := len(f.calls)
	f.mu.Unlock()
	if f.answer == nil {
		return Invocation{Status: 200, Payload: []byte("null")}, nil
	}
	return f.answer(n, event, len(payload))
}

func (f *function) Check(context.Context) error { return f.check }

func newLambda(t testing.TB, f *function, change ...func(*Lambda)) *Lambda {
	t.Helper()
	l, err := NewLambda(f, jobsARN, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(l)
	}
	return l
}

func fifo(l *Lambda) { l.fifo = true }

// messages returns one message per name, which is "group/id" or "id".
func messages(names ...string) []*queue.Message {
	var ms []*queue.Message
	for _, name := range names {
		m := message()
		group, id, grouped := strings.Cut(name, "/")
		if m.ID = group; grouped {
			m.ID, m.GroupID = id, group
		}
		ms = append(ms, m)
	}
	return ms
}

func failing(ids ...string) Invocation {
	var r events.SQSEventResponse
	for _, id := range ids {
		r.BatchItemFailures = append(r.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
	}
	payload, _ := json.Marshal(r)
	return Invocation{Status: 200, Payload: payload}
}

func outcomes(results []queue.Result) string {
	b := ""
	for _, r := range results {
		b += map[queue.Outcome]string{queue.Done: "D", queue.Failed: "F", queue.Unreached: "U",
			queue.Throttled: "T", queue.Postponed: "P"}[r.Outcome]
	}
	return b
}

func wantDelivery(t *testing.T, f *function, results []queue.Result, want string, calls ...string) {
	t.Helper()
	var got []string
	for _, ids := range f.calls {
		got = append(got, strings.Join(ids, " "))
	}
	if diff := cmp.Diff(calls, got); outcomes(results) != want || diff != "" {
		t.Errorf("outcomes %s, want %s; events (-want +got)\n%s", outcomes(results), want, diff)
	}
	for i, r := range results {
		if (r.Outcome == queue.Done) != (r.Reason == "") {
			t.Errorf("result %d is %v with the reason %q", i, r.Outcome, r.Reason)
		}
	}
}

type unsentError struct{ error }

func (unsentError) Unsent() bool    { return true }
func (e unsentError) Unwrap() error { return e.error }

func TestLambdaOutcomes(t *testing.T) {
	t.Parallel()
	secret := `{"errorMessage":"the secret is 42","errorType":"%s","stackTrace":["secret"]}`
	for _, test := range []struct {
		name   string
		answer Invocation
		err    error
		want   queue.Outcome
		reason string
	}{
		{"done", Invocation{Status: 200, Payload: []byte(`null`)}, nil, queue.Done, ""},
		{"reported", failing("m"), nil, queue.Failed, "reported in batchItemFailures"},
		{"malformed", failing("other"), nil, queue.Failed, "batchItemFailures names a message that was not in the event"},
		{"an error", Invocation{Status: 200, FunctionError: "Unhandled", Payload: fmt.Appendf(nil, secret, "ValueError")},
			nil, queue.Failed, "the function failed with ValueError (unhandled)"},
		{"an error that reports",
			Invocation{Status: 200, FunctionError: "Handled", Payload: []byte(`{"batchItemFailures":[]}`)}, nil, queue.Failed,
			"the function failed (handled)"},
		{"an error of a strange type",
			Invocation{Status: 200, FunctionError: "Unhandled", Payload: fmt.Appendf(nil, secret, "the secret is")}, nil,
			queue.Failed, "the function failed (unhandled)"},
		{"an error that is not JSON", Invocation{Status: 200, FunctionError: "Unhandled", Payload: []byte("secret")}, nil,
			queue.Failed, "the function failed (unhandled)"},
		{"a time-out", Invocation{Status: 200, FunctionError: "Unhandled",
			Payload: []byte(`{"errorMessage":"2026-11-20T12:00:00.000Z 1 Task timed out after 3.00 seconds"}`)}, nil,
			queue.Failed, "the function timed out (unhandled)"},
		{"a newer time-out",
			Invocation{Status: 200, FunctionError: "Unhandled", Payload: fmt.Appendf(nil, secret, "Sandbox.Timedout")}, nil,
			queue.Failed, "the function timed out (unhandled)"},
		{"only queued", Invocation{Status: 202}, nil, queue.Failed, "HTTP 202"},
		{"throttled", Invocation{Status: 429, Code: "TooManyRequestsException",
			Reason: "ReservedFunctionConcurrentInvocationLimitExceeded", RetryAfter: 7 * time.Second}, nil, queue.Throttled,
			"HTTP 429 TooManyRequestsException ReservedFunctionConcurrentInvocationLimitExceeded: the function accepts no " +
				"more requests for now"},
		{"throttled without a name", Invocation{Status: 429, RetryAfter: 7 * time.Second}, nil, queue.Throttled,
			"HTTP 429: the function accepts no more requests for now"},
		{"throttled by its code", Invocation{Status: 400, Code: "ThrottlingException", RetryAfter: 7 * time.Second}, nil,
			queue.Throttled, "HTTP 400 ThrottlingException: the function accepts no more requests for now"},
		{"service", Invocation{Status: 500, Code: "ServiceException", RetryAfter: 7 * time.Second}, nil, queue.Throttled,
			"HTTP 500 ServiceException: the service cannot run the function for now"},
		{"network interfaces", Invocation{Status: 502, Code: "ENILimitReachedException", RetryAfter: 7 * time.Second}, nil,
			queue.Throttled, "HTTP 502 ENILimitReachedException: the service cannot run the function for now"},
		{"snapshot", Invocation{Status: 409, Code: "SnapStartNotReadyException", RetryAfter: 7 * time.Second}, nil,
			queue.Throttled, "HTTP 409 SnapStartNotReadyException: the service cannot run the function for now"},
		{"file system", Invocation{Status: 403, Code: "EFSMountFailureException", RetryAfter: 7 * time.Second}, nil,
			queue.Throttled, "HTTP 403 EFSMountFailureException: the service cannot run the function for now"},
		{"gateway", Invocation{Status: 503, RetryAfter: 7 * time.Second}, nil, queue.Throttled,
			"HTTP 503: the service cannot run the function for now"},
		{"gateway's patience", Invocation{Status: 504}, nil, queue.Failed, "HTTP 504"},
		{"too large", Invocation{Status: 413, Code: "RequestTooLargeException"}, nil, queue.Failed,
			"HTTP 413 RequestTooLargeException: the event is too large for the function (store large bodies elsewhere and " +
				"send a reference)"},
		{"no function", Invocation{Status: 404, Code: "ResourceNotFoundException", Message: "Function not found"}, nil,
			queue.Unreached,
			"HTTP 404 ResourceNotFoundException: function not found: check its name, its alias or version, the " +
				"account and the region"},
		{"no Lambda", Invocation{Status: 404}, nil, queue.Unreached,
			"HTTP 404: no Lambda service responded: check the region and AWS_ENDPOINT_URL_LAMBDA"},
		{"a redirect", Invocation{Status: 307}, nil, queue.Unreached,
			"HTTP 307: no Lambda service responded: check the region and AWS_ENDPOINT_URL_LAMBDA"},
		{"the first redirect", Invocation{Status: 300}, nil, queue.Unreached,
			"HTTP 300: no Lambda service responded: check the region and AWS_ENDPOINT_URL_LAMBDA"},
		{"the last redirect", Invocation{Status: 399}, nil, queue.Unreached,
			"HTTP 399: no Lambda service responded: check the region and AWS_ENDPOINT_URL_LAMBDA"},
		{"the last refusal", Invocation{Status: 499}, nil, queue.Failed, "HTTP 499"},
		{"denied", Invocation{Status: 403, Code: "AccessDeniedException"}, nil, queue.Unreached,
			"HTTP 403 AccessDeniedException: access denied: allow these credentials lambda:InvokeFunction on the function"},
		{"expired", Invocation{Status: 403, Code: "ExpiredTokenException"}, nil, queue.Unreached,
			"HTTP 403 ExpiredTokenException: the credentials were not accepted: check that they are current, and this " +
				"machine's clock"},
		{"bad request", Invocation{Status: 400, Code: "InvalidRequestContentException", Message: "x"}, nil, queue.Failed,
			"HTTP 400 InvalidRequestContentException"},
		{"a loop", Invocation{Status: 400, Code: "RecursiveInvocationException"}, nil, queue.Failed,
			"HTTP 400 RecursiveInvocationException"},
		{"a strange code", Invocation{Status: 418, Code: "so\nwhat"}, nil, queue.Failed, "HTTP 418"},
		{"nothing", Invocation{}, nil, queue.Failed, "HTTP 0"},
		{"unsent", Invocation{}, unsentError{&queue.Error{Code: queue.CodeUnreachable, Message: "connection refused"}},
			queue.Unreached, "connection refused"},
		{"unsent, unexplained", Invocation{}, fmt.Errorf("calling: %w", unsentError{io.EOF}), queue.Unreached,
			"the function could not be called"},
		{"cut off", Invocation{}, fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), queue.Failed,
			"connection closed before the response was complete; the function may have run"},
		{"late", Invocation{}, context.DeadlineExceeded, queue.Failed, "no response in time; the function may be running"},
		{"late in the network", Invocation{}, &net.DNSError{IsTimeout: true}, queue.Failed,
			"no response in time; the function may be running"},
		{"lost", Invocation{}, errors.New("who knows"), queue.Failed, "incomplete response; the function may have run"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := &function{answer: func(int, events.SQSEvent, int) (Invocation, error) { return test.answer, test.err }}
			l := newLambda(t, f)
			r := l.Deliver(t.Context(), messages("m")[0])
			if r.Outcome != test.want || r.Reason != test.reason || r.Status != test.answer.Status {
				t.Errorf("got %v %q status %d, want %v %q", r.Outcome, r.Reason, r.Status, test.want, test.reason)
			}
			if r.Outcome == queue.Throttled && r.RetryAfter != 7*time.Second || r.Outcome != queue.Throttled &&
				r.RetryAfter != 0 {
				t.Errorf("retry after %v", r.RetryAfter)
			}
			if r.Fault != (test.answer.FunctionError != "") {
				t.Errorf("fault: %v with the error %q", r.Fault, test.answer.FunctionError)
			}
			if unsent := r.Outcome == queue.Failed && r.Status >= 400 && r.Status <= 499; r.Unsent != unsent {
				t.Errorf("unsent: %v; the service refused it without running the function: %v", r.Unsent, unsent)
			}
			if text := fmt.Sprint(r.Reason, r.Err); strings.Contains(text, "secret") {
				t.Errorf("the reason holds the error's text: %s", text)
			}
			if test.err != nil && !errors.Is(r.Err, test.err) || test.answer.Message != "" &&
				(r.Err == nil || r.Err.Error() != test.answer.Message) {
				t.Errorf("the cause is %v", r.Err)
			}
			if len(f.calls) != 1 {
				t.Errorf("%d calls", len(f.calls))
			}
		})
	}
}

func TestAnswerOfAFailedFunctionIsKept(t *testing.T) {
	t.Parallel()
	trace := strings.Repeat(`"  at order.js:1",`, 100)
	for _, test := range []struct {
		name, payload, errorKind, line, excerpt string
	}{
		{"an error", `{"errorType":"ValueError","errorMessage":"missing customer_id"}`, "Unhandled", "missing customer_id",
			"missing customer_id\n" + `{"errorType":"ValueError","errorMessage":"missing customer_id"}`},
		{"a long error", `{"stackTrace":[` + trace + `""],"errorMessage":"no\nsuch order"}`, "Handled", "no such order",
			("no such order\n" + `{"stackTrace":[` + trace)[:excerptBytes]},
		{"a long message", `{"errorMessage":"` + strings.Repeat("é", 5000) + `"}`, "Handled",
			strings.Repeat("é", shownCharacters) + "...", strings.ToValidUTF8((strings.Repeat("é", shownCharacters) + "...\n" +
				`{"errorMessage":"` + strings.Repeat("é", 5000))[:excerptBytes], "")},
		{"no JSON", "panic: nil map", "Unhandled", "panic: nil map", ""},
		{"not text", "a\xff\x00b", "Unhandled", `a\x00b`, "a\x00b"},
		{"a report that is not understood", `{"BatchItemFailures":[{"itemIdentifier":"m"}]}`, "",
			`{"BatchItemFailures":[{"itemIdentifier":"m"}]}`, ""},
		{"a success", `{"secret":1}`, "", "", ""},
	} {
		f := &function{answer: func(int, events.SQSEvent, int) (Invocation, error) {
			return Invocation{Status: 200, FunctionError: test.errorKind, Payload: []byte(test.payload)}, nil
		}}
		r := newLambda(t, f).Deliver(t.Context(), messages("m")[0])
		if r.Answer != test.line || r.Excerpt != test.excerpt {
			t.Errorf("%s: answer %q and excerpt %q, want %q and %q", test.name, r.Answer, r.Excerpt, test.line, test.excerpt)
		}
	}
}

func TestLambdaEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f := &function{answer: func(int, events.SQSEvent, int) (Invocation, error) {
		cancel()
		return Invocation{}, context.Canceled
	}}
	l := newLambda(t, f)
	if r := l.Deliver(ctx, messages("m")[0]); r.Outcome != queue.Failed ||
		r.Reason != "stopped before the function had responded" {
		t.Errorf("got %v %q", r.Outcome, r.Reason)
	}
	if r := l.Deliver(ctx, messages("m")[0]); r.Outcome != queue.Unreached ||
		r.Reason != "stopped before anything was sent" || len(f.calls) != 1 {
		t.Errorf("got %v %q after %d calls", r.Outcome, r.Reason, len(f.calls))
	}
	f.answer = func(int, events.SQSEvent, int) (Invocation, error) {
		return Invocation{}, unsentError{context.Canceled}
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	f.answer = func(int, events.SQSEvent, int) (Invocation, error) {
		cancel()
		return Invocation{}, unsentError{context.Canceled}
	}
	if r := l.Deliver(ctx, messages("m")[0]); r.Outcome != queue.Unreached ||
		r.Reason != "stopped before anything was sent" {
		t.Errorf("got %v %q", r.Outcome, r.Reason)
	}
}

func TestLambdaBatch(t *testing.T) {
	t.Parallel()
	f := &function{answer: func(int, events.SQSEvent, int) (Invocation, error) { return failing("b"), nil }}
	wantDelivery(t, f, newLambda(t, f).DeliverBatch(t.Context(), messages("a", "b", "c")), "DFD", "a b c")
	f = &function{answer: func(int, events.SQSEvent, int) (Invocation, error) { return failing("x"), nil }}
	wantDelivery(t, f, newLambda(t, f).DeliverBatch(t.Context(), messages("a", "b", "c")), "FFF", "a b c")
	f = &function{}
	wantDelivery(t, f, newLambda(t, f).DeliverBatch(t.Context(), nil), "")
}

func TestReturnedErrorIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{`{"errorMessage":"m","errorType":"E"}`, `{"errorMessage":"m"}`, `[]`, `null`} {
		f := &function{answer: func(int, events.SQSEvent, int) (Invocation, error) {
			return Invocation{Status: 200, Payload: []byte(reply)}, nil
		}}
		if r := newLambda(t, f).Deliver(t.Context(), message()); r.Outcome != queue.Done || r.Fault {
			t.Errorf("%s: %+v", reply, r)
		}
	}
}

func TestLambdaProbe(t *testing.T) {
	t.Parallel()
	f := &function{check: errors.New("no such function")}
	if err := newLambda(t, f).Probe(t.Context()); !errors.Is(err, f.check) {
		t.Errorf("got %v", err)
	}
	plain := struct{ Invoker }{f}
	l, err := NewLambda(plain, jobsARN, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Probe(t.Context()); err != nil {
		t.Errorf("an Invoker that cannot check: %v", err)
	}
}

func TestFIFOGroups(t *testing.T) {
	t.Parallel()
	f := &function{answer: func(int, events.SQSEvent, int) (Invocation, error) { return failing("1"), nil }}
	ms := messages("a/1", "b/2", "a/3", "b/4", "a/5")
	wantDelivery(t, f, newLambda(t, f, fifo).DeliverBatch(t.Context(), ms), "FDFDF", "1 2 3 4 5")
	f.calls = nil
	wantDelivery(t, f, newLambda(t, f).DeliverBatch(t.Context(), ms), "FDDDD", "1 2 3 4 5")
	f.calls = nil
	wantDelivery(t, f, newLambda(t, f, fifo).DeliverBatch(t.Context(), messages("1", "2")), "FD", "1 2")
}

func large(name string, size int) *queue.Message {
	m := messages(name)[0]
	m.Body = strings.Repeat("x", size)
	return m
}

func TestLargeBatchesAreSplit(t *testing.T) {
	t.Parallel()
	done := func(int, events.SQSEvent, int) (Invocation, error) { return failing(), nil }
	t.Run("by size", func(t *testing.T) {
		t.Parallel()
		f := &function{answer: func(_ int, _ events.SQSEvent, size int) (Invocation, error) {
			if size > maxEvent {
				return Invocation{Status: 413}, nil
			}
			return failing("c"), nil
		}}
		var ms []*queue.Message
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			ms = append(ms, large(name, 2<<20))
		}
		results := newLambda(t, f).DeliverBatch(t.Context(), ms)
		wantDelivery(t, f, results, "FFFDF", "a b", "c d", "e")
	})
	t.Run("one too large", func(t *testing.T) {
		t.Parallel()
		f := &function{answer: done}
		ms := []*queue.Message{large("a/1", 10), large("a/2", 7<<20), large("a/3", 10), large("b/4", 10)}
		wantDelivery(t, f, newLambda(t, f).DeliverBatch(t.Context(), ms), "DFDD", "1", "3 4")
		f.calls = nil
		results := newLambda(t, f, fifo).DeliverBatch(t.Context(), ms)
		wantDelivery(t, f, results, "DFFD", "1", "4")
		if !strings.HasPrefix(results[1].Reason, "too large for a function: its event has 73") ||
			results[2].Reason != "an earlier message of its group is not done" {
			t.Errorf("reasons %q, %q", results[1].Reason, results[2].Reason)
		}
		if !results[1].Unsent || !results[2].Unsent || results[0].Unsent || results[3].Unsent {
			t.Errorf("nothing was sent of the second and the third: %+v", results)
		}
	})
	t.Run("by refusal", func(t *testing.T) {
		t.Parallel()
		f := &function{answer: func(_ int, event events.SQSEvent, _ int) (Invocation, error) {
			for _, r := range event.Records {
				if len(event.Records) > 2 || len(r.Body) > 100 {
					return Invocation{Status: 413, Code: "RequestTooLargeException"}, nil
				}
			}
			return failing(), nil
		}}
		ms := []*queue.Message{large("a", 1), large("b", 1), large("c", 1), large("d", 200), large("e", 1)}
		wantDelivery(t, f, newLambda(t, f).DeliverBatch(t.Context(), ms), "DDDFD", "a b c d e", "a b", "c d", "c", "d", "e")
	})
	t.Run("throttled in the middle", func(t *testing.T) {
		t.Parallel()
		f := &function{answer: func(n int, _ events.SQSEvent, _ int) (Invocation, error) {
			if n == 2 {
				return Invocation{Status: 429, RetryAfter: time.Second}, nil
			}
			return failing(), nil
		}}
		ms := []*queue.Message{large("a", 4<<20), large("b", 4<<20), large("c", 4<<20)}
		results := newLambda(t, f).DeliverBatch(t.Context(), ms)
		wantDelivery(t, f, results, "DTT", "a", "b")
		if results[2].RetryAfter != time.Second || results[2].Duration != 0 {
			t.Errorf("got %+v", results[2])
		}
	})
	t.Run("failed before", func(t *testing.T) {
		t.Parallel()
		f := &function{answer: func(n int, _ events.SQSEvent, _ int) (Invocation, error) {
			if n == 1 {
				return Invocation{}, io.ErrUnexpectedEOF
			}
			return failing(), nil
		}}
		ms := []*queue.Message{large("a/1", 4<<20), large("a/2", 4<<20), large("b/3", 4<<20), large("a/4", 1)}
		wantDelivery(t, f, newLambda(t, f, fifo).DeliverBatch(t.Context(), ms), "FFDF", "1", "3")
	})
}

func TestBatchProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ordered := rapid.Bool().Draw(rt, "fifo")
		var ms []*queue.Message
		for i := range rapid.IntRange(1, 10).Draw(rt, "messages") {
			m := large(fmt.Sprint(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "group"), "/", i),
				rapid.IntRange(0, 3000).Draw(rt, "size"))
			ms = append(ms, m)
		}
		const most = 4000
		ran := map[string]int{}
		reported := map[string]bool{}
		f := &function{answer: func(_ int, event events.SQSEvent, size int) (Invocation, error) {
			if size > most {
				rt.Fatalf("an event of %d bytes", size)
			}
			if len(event.Records) > rapid.IntRange(1, 20).Draw(rt, "refused above") {
				return Invocation{Status: 413}, nil
			}
			kind := rapid.IntRange(0, 9).Draw(rt, "kind")
			if kind == 9 {
				return Invocation{Status: 429}, nil
			}
			var failed []string
			for _, r := range event.Records {
				ran[r.MessageId]++
				if kind == 8 || rapid.IntRange(0, 3).Draw(rt, "fails") == 0 {
					failed = append(failed, r.MessageId)
					reported[r.MessageId] = true
				}
			}
			if kind == 8 {
				return Invocation{}, io.ErrUnexpectedEOF
			}
			return failing(failed...), nil
		}}
		l := newLambda(t, f, func(l *Lambda) { l.maxEvent = most })
		l.fifo = ordered
		stopped := map[string]bool{}
		for i, r := range l.DeliverBatch(context.Background(), ms) {
			id, group := ms[i].ID, ms[i].GroupID
			switch {
			case ran[id] > 1:
				rt.Errorf("%s ran %d times", id, ran[id])
			case r.Outcome == queue.Done && (ran[id] != 1 || reported[id]):
				rt.Errorf("%s is done, ran %d times, reported %v", id, ran[id], reported[id])
			case (r.Outcome == queue.Unreached || r.Outcome == queue.Throttled) && ran[id] > 0 && !stopped[group]:
				rt.Errorf("%s ran and is %v", id, r.Outcome)
			case ordered && stopped[group] && r.Outcome == queue.Done:
				rt.Errorf("%s of group %s is done behind one that is not", id, group)
			case !ordered && r.Outcome == queue.Failed && ran[id] == 0 && !strings.HasPrefix(r.Reason, "too large"):
				rt.Errorf("%s failed without being run: %s", id, r.Reason)
			}
			stopped[group] = stopped[group] || ordered && r.Outcome != queue.Done
		}
	})
}
