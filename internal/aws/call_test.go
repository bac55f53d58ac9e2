package aws

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"tendril/queue"
)

var noWait = new(time.Duration)

type script struct {
	steps []func(*http.Request) (*http.Response, error)
	calls atomic.Int64
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	n := int(s.calls.Add(1)) - 1
	return roundTrip(s.steps[min(n, len(s.steps)-1)]).RoundTrip(r)
}

func answers(resp ...func() *http.Response) *script {
	s := &script{}
	for _, r := range resp {
		s.steps = append(s.steps, func(*http.Request) (*http.Response, error) { return r(), nil })
	}
	return s
}

func ok() *http.Response { return reply(200, `{"Successful":[{"Id":"0"}]}`) }

func throttled() *http.Response {
	return refuse(403, "RequestThrottled", "RequestThrottled", "Rate exceeded")
}

func unavailable() *http.Response { return reply(503, `<html>upstream is down</html>`) }

func TestAttempts(t *testing.T) {
	t.Parallel()
	reset := func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	lost := func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
	denied := func() *http.Response {
		return refuse(403, "AccessDeniedException", "AccessDenied", "User is not authorized to perform: sqs:deletemessage")
	}
	gone := func() *http.Response {
		return refuse(400, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue",
			"The specified queue does not exist.")
	}
	odd := func() *http.Response { return reply(200, `<html>hello</html>`) }
	receive := func(q *Queue) error {
		_, err := q.Receive(context.Background(), queue.ReceiveRequest{Max: 1, Wait: noWait})
		return err
	}
	remove := func(q *Queue) error { return errors.Join(q.Delete(context.Background(), []string{"r"})...) }
	send := func(q *Queue) error {
		_, err := q.Send(context.Background(), []queue.Outgoing{{Body: "b"}})
		return err
	}
	sendOnce := func(q *Queue) error {
		sent, err := q.SendOnce(context.Background(), queue.Outgoing{Body: "b"})
		return errors.Join(err, sent.Err)
	}
	answered := func(*http.Request) (*http.Response, error) { return ok(), nil }
	steps := func(each ...func(*http.Request) (*http.Response, error)) *script { return &script{steps: each} }
	tests := []struct {
		name  string
		do    func(*Queue) error
		steps *script
		calls int64
		want  error
		says  string
	}{
		{"delete, throttled twice", remove, answers(throttled, throttled, ok), 3, nil, ""},
		{"delete, throttled for ever", remove, answers(throttled), 3, queue.ErrThrottled, "Rate exceeded"},
		{"delete, a bad gateway once", remove, answers(unavailable, ok), 2, nil, ""},
		{"delete, a bad gateway for ever", remove, answers(unavailable), 3, queue.ErrUnreachable, "HTTP status 503"},
		{"delete, answer lost once", remove, steps(lost, answered), 2, nil, ""},
		{"delete, connection reset for ever", remove, steps(reset), 3, queue.ErrUnreachable, "AWS_ENDPOINT_URL_SQS"},
		{"delete, denied", remove, answers(denied), 1, queue.ErrDenied, "not authorized"},
		{"delete, queue gone", remove, answers(gone), 1, queue.ErrNoQueue,
			"queue jobs does not exist at sqs.eu-west-1.amazonaws.com"},
		{"delete, not an SQS server", remove, answers(odd), 1, queue.ErrUnreachable, "an invalid SQS response"},
		{"delete, entry not in the answer", remove, answers(func() *http.Response {
			return reply(200, `{}`)
		}), 1, queue.ErrUnreachable, "has no result for entry 1 of 1"},
		{"send, throttled once", send, answers(throttled, ok), 2, nil, ""},
		{"send once, throttled", sendOnce, answers(throttled), 1, queue.ErrThrottled, "Rate exceeded"},
		{"send once, answer lost", sendOnce, steps(lost), 1, queue.ErrUnreachable, "did not respond"},
		{"receive, throttled", receive, answers(throttled), 1, queue.ErrThrottled, "Rate exceeded"},
		{"receive, answer lost", receive, steps(lost), 1, queue.ErrUnreachable, "did not respond"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := openCanned(t, test.steps, nil)
				err := test.do(q)
				if !errors.Is(err, test.want) || test.want == nil && err != nil {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if err != nil && !strings.Contains(err.Error(), test.says) {
					t.Errorf("the error %q does not say %q", err, test.says)
				}
				if got := test.steps.calls.Load(); got != test.calls {
					t.Errorf("%d requests, want %d", got, test.calls)
				}
			})
		})
	}
}

func TestRetriesHaveABudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := answers(unavailable)
		q := openCanned(t, s, nil)
		for range 200 {
			q.Delete(context.Background(), []string{"r"})
		}
		if got := s.calls.Load(); got > 350 {
			t.Errorf("%d requests for 200 calls: the budget does not hold", got)
		}
	})
}

func TestEndOfTheCallersContext(t *testing.T) {
	t.Parallel()
	hang := &script{steps: []func(*http.Request) (*http.Response, error){func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}}}
	t.Run("cancelled poll", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(7*time.Second, cancel)
			began := time.Now()
			_, err := openCanned(t, hang, nil).Receive(ctx, queue.ReceiveRequest{Max: 1})
			if err != context.Canceled || time.Since(began) != 7*time.Second {
				t.Errorf("got %v after %s, want context.Canceled at once", err, time.Since(began))
			}
		})
	})
	t.Run("poll that is never answered", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			wait := 5 * time.Second
			_, err := openCanned(t, hang, nil).Receive(context.Background(), queue.ReceiveRequest{Max: 1, Wait: &wait})
			if !errors.Is(err, queue.ErrUnreachable) || time.Since(began) != 15*time.Second {
				t.Errorf("got %v after %s, want unreachable after the wait and 10 s", err, time.Since(began))
			}
		})
	})
	t.Run("pause between attempts", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
			defer cancel()
			errs := openCanned(t, answers(throttled), nil).Delete(ctx, []string{"r"})
			if len(errs) != 1 || !errors.Is(errs[0], context.DeadlineExceeded) {
				t.Errorf("got %v, want the end of the caller's time", errs)
			}
		})
	})
}

func TestRequestsAreSigned(t *testing.T) {
	t.Parallel()
	check := func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil {
			return nil, err
		}
		again := r.Clone(r.Context())
		for name := range again.Header {
			if !strings.Contains(strings.ToLower(r.Header.Get("Authorization")), strings.ToLower(name)+";") &&
				name != "X-Amzn-Query-Mode" {
				again.Header.Del(name)
			}
		}
		sum := sha256.Sum256(body)
		key := sdk.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "not a secret"}
		if err := v4.NewSigner().SignHTTP(r.Context(), key, again, hex.EncodeToString(sum[:]), "sqs", "eu-west-1",
			at); err != nil {
			return nil, err
		}
		got, want := r.Header.Get("Authorization"), again.Header.Get("Authorization")
		if got != want || !strings.Contains(got, "/eu-west-1/sqs/aws4_request") {
			t.Errorf("Authorization is\n%s, want\n%s", got, want)
		}
		return ok(), nil
	}
	q := openCanned(t, &script{steps: []func(*http.Request) (*http.Response, error){check}}, nil)
	if errs := q.Delete(t.Context(), []string{"r"}); errs != nil {
		t.Error(errs)
	}
}

func TestWrongClockIsCorrected(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var theirs atomic.Int64
				theirs.Store(int64(skew))
				server := func(r *http.Request) (*http.Response, error) {
					now := time.Now().Add(time.Duration(theirs.Load())).UTC()
					at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
					if err != nil {
						return nil, err
					}
					date := []string{"Date", now.Format(http.TimeFormat)}
					if now.Sub(at).Abs() > 5*time.Minute {
						return refuse(403, "InvalidSignatureException", "InvalidSignature", "Signature expired", date...), nil
					}
					return reply(200, `{"Successful":[{"Id":"0"}]}`, date...), nil
				}
				s := &script{steps: []func(*http.Request) (*http.Response, error){server}}
				var adjusted []time.Duration
				q := openCanned(t, s, &Events{ClockAdjusted: func(d time.Duration) { adjusted = append(adjusted, d) }})
				for range 3 {
					if _, err := q.Receive(context.Background(), queue.ReceiveRequest{Max: 1, Wait: noWait}); err != nil {
						t.Fatal(err)
					}
				}
				if n := s.calls.Load(); n != 4 || len(adjusted) != 1 || (adjusted[0]-skew).Abs() > time.Second {
					t.Errorf("%d requests for 3 calls, clock adjusted by %v; want 4, and %s once", n, adjusted, skew)
				}
				theirs.Store(0)
				if errs := q.Delete(context.Background(), []string{"r"}); errs != nil {
					t.Errorf("after the clock was set right: %v", errs)
				}
			})
		})
	}
}

func TestARefusalThatIsNotAboutTheClock(t *testing.T) {
	t.Parallel()
	now := func() *http.Response {
		return refuse(403, "SignatureDoesNotMatch", "SignatureDoesNotMatch", "The secret is wrong", "Date",
			time.Now().UTC().Format(http.TimeFormat))
	}
	stale := func() *http.Response {
		return refuse(403, "SignatureDoesNotMatch", "SignatureDoesNotMatch", "The secret is wrong", "Date",
			"Mon, 02 Jan 2006 15:04:05 GMT", "Age", "600")
	}
	for _, answer := range []func() *http.Response{now, stale} {
		s := answers(answer)
		errs := openCanned(t, s, nil).Delete(t.Context(), []string{"r"})
		if len(errs) != 1 || !errors.Is(errs[0], queue.ErrDenied) || s.calls.Load() != 1 {
			t.Errorf("got %v after %d requests, want access denied at once", errs, s.calls.Load())
		}
	}
}

func TestDamagedMessages(t *testing.T) {
	t.Parallel()
	var found []Corruption
	events := &Events{Corrupted: func(c Corruption) { found = append(found, c) }}
	damaged := strings.Replace(wireMessage("m-1", "hello"), `"Body":"hello"`, `"Body":"hellO"`, 1)
	q := openCanned(t, answers(func() *http.Response {
		return reply(200, `{"Messages":[`+damaged+`,`+wireMessage("m-2", "hello")+`]}`)
	}), events)
	messages, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 2})
	if err != nil || len(messages) != 1 || messages[0].ID != "m-2" {
		t.Errorf("got %v, %v; want m-2 alone", messages, err)
	}
	q = openCanned(t, answers(func() *http.Response {
		return reply(200, `{"Successful":[{"Id":"0","MessageId":"m-3","MD5OfMessageBody":"0"}]}`)
	}), events)
	sent, err := q.Send(t.Context(), []queue.Outgoing{{Body: "x"}})
	if err != nil || sent[0].ID != "m-3" || !errors.Is(sent[0].Err, &queue.Error{Code: queue.CodeInvalidMessageContents}) {
		t.Errorf("got %+v, %v; want a damaged entry", sent, err)
	}
	want := []Corruption{{Queue: "jobs", MessageID: "m-1", Part: "body"},
		{Queue: "jobs", MessageID: "m-3", Part: "body", Sent: true}}
	if !slices.Equal(found, want) {
		t.Errorf("reported %+v, want %+v", found, want)
	}
}

func TestSendRefusesWhatJSONCannotCarry(t *testing.T) {
	t.Parallel()
	s := answers(func() *http.Response { return reply(200, `{"Successful":[{"Id":"0","MessageId":"good"}]}`) })
	q := openCanned(t, s, nil)
	sent, err := q.Send(t.Context(),
		[]queue.Outgoing{{Body: "\xff"}, {Body: "fine"},
			{Body: "b", Attributes: []queue.Attribute{{Name: "a", Type: "String", Value: "\xff"}}}})
	if err != nil || sent[0].Err == nil || sent[1].ID != "good" || sent[1].Err != nil || sent[2].Err == nil {
		t.Errorf("got %+v, %v; want the second accepted", sent, err)
	}
	if sent, err = q.Send(t.Context(), []queue.Outgoing{{Body: "\xff"}}); err != nil || sent[0].Err == nil ||
		s.calls.Load() != 1 {
		t.Errorf("got %+v, %v after %d requests; want no request for nothing", sent, err, s.calls.Load())
	}
}

func TestDeletesAreBatchedByTen(t *testing.T) {
	t.Parallel()
	var sizes []int
	s := &script{steps: []func(*http.Request) (*http.Response, error){func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		n := bytes.Count(body, []byte(`"ReceiptHandle"`))
		sizes = append(sizes, n)
		answer := `{"Failed":[{"Id":"1","Code":"ReceiptHandleIsInvalid","Message":"bad"}],"Successful":[{"Id":"0"}`
		for i := 2; i < n; i++ {
			answer += fmt.Sprintf(`,{"Id":"%d"}`, i)
		}
		return reply(200, answer+`]}`), err
	}}}
	errs := openCanned(t, s, nil).Delete(t.Context(), make([]string, 23))
	if !slices.Equal(sizes, []int{10, 10, 3}) || len(errs) != 23 {
		t.Fatalf("calls of %v, %d errors; want 10, 10, 3 and 23", sizes, len(errs))
	}
	for i, err := range errs {
		if (err != nil) != (i%10 == 1) {
			t.Errorf("receipt %d: %v", i, err)
		}
	}
}

func queueOnServer(t *testing.T, handle http.HandlerFunc) (q *Queue, connections *atomic.Int64) {
	t.Helper()
	connections = new(atomic.Int64)
	server := httptest.NewUnstartedServer(handle)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	s, err := OpenSQS(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if q, err = s.Queue(t.Context(), server.URL+"/123456789012/jobs"); err != nil {
		t.Fatal(err)
	}
	return q, connections
}

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	long := `{"Messages":[` + wireMessage("m", strings.Repeat("long ", 100_000)) + `]}`
	q, connections := queueOnServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			_, _ = io.WriteString(w, long)
		}
	})
	for range 10 {
		messages, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Wait: noWait})
		if err != nil || len(messages) != 1 || len(messages[0].Body) != 500_000 {
			t.Fatal(len(messages), err)
		}
	}
	// net/http abandons a connection if it does not see the request written within 50 ms.
	if n := connections.Load(); n > 3 {
		t.Errorf("%d connections for 10 calls, want 1", n)
	}
}

func TestConnectionsAreKeptForAllCalls(t *testing.T) {
	t.Parallel()
	const calls = 128
	arrived, answer := make(chan struct{}), make(chan struct{})
	q, connections := queueOnServer(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		_, _ = io.WriteString(w, `{}`)
	})
	for range 3 {
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				if _, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Wait: noWait}); err != nil {
					t.Error(err)
				}
			})
		}
		for range calls {
			<-arrived
		}
		for range calls {
			answer <- struct{}{}
		}
		all.Wait()
	}
	if n := connections.Load(); n > calls+calls/10 {
		t.Errorf("%d connections for 3 times %d calls", n, calls)
	}
}

func TestEndlessResponseIsLimited(t *testing.T) {
	t.Parallel()
	endless := &http.Response{Body: io.NopCloser(endlessReader{}), ContentLength: -1}
	if _, err := readAll(nil, endless); err == nil {
		t.Error("no error")
	}
	if _, err := readAll(nil, &http.Response{ContentLength: maxAnswer + 1}); err == nil {
		t.Error("no error for an announced length")
	}
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) { return len(p), nil }
