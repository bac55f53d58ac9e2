package aws

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"tendril/queue"
)

func TestFunctionReferences(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:lambda:us-east-1:123456789012:function:resize"
	for s, want := range map[string]functionReference{
		"resize":         {name: "resize", called: "resize"},
		"re-size_2":      {name: "re-size_2", called: "re-size_2"},
		"resize:live":    {name: "resize", qualifier: "live", called: "resize"},
		"resize:7":       {name: "resize", qualifier: "7", called: "resize"},
		"resize:$LATEST": {name: "resize", qualifier: "$LATEST", called: "resize"},
		"123456789012:function:resize": {name: "resize",
			called: "123456789012:function:resize"},
		"123456789012:function:resize:live": {name: "resize", qualifier: "live",
			called: "123456789012:function:resize"},
		arn:           {name: "resize", region: "us-east-1", called: arn},
		arn + ":live": {name: "resize", qualifier: "live", region: "us-east-1", called: arn},
		"arn:aws-cn:lambda:cn-north-1:1:function:a": {name: "a", region: "cn-north-1",
			called: "arn:aws-cn:lambda:cn-north-1:1:function:a"},
	} {
		got, err := parseFunction(s)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", s, got, err)
		}
	}
	for s, advice := range map[string]string{
		"": `"" is not a name of 1 to 64`, "a b": `"a b" is not a name`, "resize:": `"" is not an alias`,
		"resize:a:b":                                                `"a:b" is not an alias`,
		strings.Repeat("x", 65):                                     "is not a name",
		"https://x.lambda-url.us-east-1.on.aws/":                    "it is a URL, and functions are invoked by name",
		"arn:aws:sqs:us-east-1:123456789012:jobs":                   `its service is "sqs", not lambda`,
		"arn:aws:lambda:us-east-1:123456789012:layer:x":             "it does not name a function",
		"arn:aws:lambda:evil.example/:123456789012:function:resize": `"evil.example/" is not a region`,
		"arn:aws:lambda::123456789012:function:resize":              "the region or the account is empty",
		"arn:x":                "not enough sections",
		"1234:function:resize": `"1234" is not an account`, "resize:$latest": `"$latest" is not an alias`,
	} {
		_, err := parseFunction(s)
		if err == nil || !strings.Contains(err.Error(), advice) ||
			!strings.Contains(err.Error(), "use its name, such as resize or resize:live") {
			t.Errorf("%q: %v", s, err)
		}
	}
	if got := (functionReference{name: "a", qualifier: "b"}).String(); got != "a:b" {
		t.Errorf("got %s", got)
	}
}

func lambdaServer(t *testing.T, function string, handle http.HandlerFunc) *Lambda {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return openLambda(t, &LambdaOptions{Function: function, Client: Options{Region: "eu-west-1", Endpoint: server.URL}})
}

func openLambda(t *testing.T, opts *LambdaOptions) *Lambda {
	t.Helper()
	l, err := OpenLambda(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func TestInvoke(t *testing.T) {
	t.Parallel()
	l := lambdaServer(t, "arn:aws:lambda:us-east-1:123456789012:function:resize:live",
		func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if string(body) != `{"a":1}` || r.URL.Query().Get("Qualifier") != "live" ||
				!strings.Contains(r.Header.Get("Authorization"), "/us-east-1/lambda/") ||
				!strings.HasSuffix(r.URL.Path, "/functions/arn:aws:lambda:us-east-1:123456789012:function:resize/invocations") ||
				r.Header.Get("X-Amz-Invocation-Type") != "RequestResponse" || r.Header.Get("Accept-Encoding") == "gzip" {
				t.Errorf("asked %s %q with %v", r.URL, body, r.Header)
			}
			w.Header().Set("X-Amzn-Requestid", "id-1")
			w.Header().Set("X-Amz-Function-Error", "Handled")
			io.WriteString(w, "{}")
		})
	got, err := l.Invoke(t.Context(), []byte(`{"a":1}`), nil)
	if err != nil || got.Status != 200 || got.FunctionError != "Handled" || string(got.Payload) != "{}" ||
		got.RequestID != "id-1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRefusedInvocations(t *testing.T) {
	t.Parallel()
	l := lambdaServer(t, "resize", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Amzn-Requestid", "id-2")
		w.Header().Set("X-Amzn-Errortype", "TooManyRequestsException")
		w.Header().Set("Retry-After", "9")
		w.WriteHeader(429)
		io.WriteString(w, `{"Type":"User","message":"Rate Exceeded.","Reason":"ReservedFunctionConcurrentInvocationLimitExceeded"}`)
	})
	got, err := l.Invoke(t.Context(), nil, nil)
	want := queue.Invocation{Status: 429, Code: "TooManyRequestsException",
		Reason: "ReservedFunctionConcurrentInvocationLimitExceeded", Message: "Rate Exceeded.", RetryAfter: 9 * time.Second,
		RequestID: "id-2"}
	if err != nil || got.Payload != nil || got.Code != want.Code || got.Reason != want.Reason ||
		got.Message != want.Message || got.RetryAfter != want.RetryAfter || got.RequestID != want.RequestID ||
		got.Status != 429 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRetryAfterHeaders(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, " 3 ": 3 * time.Second, "-1": 0, "soon": 0, "4000000000": queue.MaxVisibility, "99999999999": 0,
		"Fri, 20 Nov 2026 12:01:30 GMT": 90 * time.Second, "Fri, 20 Nov 2020 12:01:30 GMT": 0,
		"Fri, 20 Nov 9999 12:01:30 GMT": queue.MaxVisibility,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func wantCode(t *testing.T, err error, code string, words ...string) {
	t.Helper()
	if !isCode(err, code) {
		t.Errorf("got %v, want the code %s", err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got %q, want %q in it", err, w)
		}
	}
}

func TestCheckAFunction(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status     int
		code, body string
		want       string
		words      []string
	}{
		{204, "", "", "", nil},
		{200, "", "{}", "", nil},
		{404, "ResourceNotFoundException", `{"Message":"Function not found: x"}`, queue.CodeResourceNotFound,
			[]string{"Lambda function resize does not exist in region eu-west-1 (http://127.0.0.1",
				"'aws lambda list-functions --region eu-west-1'"}},
		{403, "AccessDeniedException", `{"Message":"User x is not authorized"}`, queue.CodeAccessDenied,
			[]string{"User x is not authorized", "lambda:InvokeFunction"}},
		{403, "ExpiredTokenException", `{}`, queue.CodeAccessDenied, []string{"have not expired"}},
		{404, "", "<html>", queue.CodeUnreachable,
			[]string{"does not respond like Lambda (HTTP status 404", "AWS_ENDPOINT_URL_LAMBDA"}},
		{429, "TooManyRequestsException", `{"message":"slow"}`, queue.CodeRequestThrottled, []string{"slow"}},
		{500, "ServiceException", `{"message":"oh"}`, queue.CodeUnreachable, []string{"oh; check the function"}},
	} {
		l := lambdaServer(t, "resize", func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Header.Get("X-Amz-Invocation-Type") != "DryRun" || len(body) > 0 {
				t.Errorf("asked with %v %q", r.Header, body)
			}
			if test.code != "" {
				w.Header().Set("X-Amzn-Errortype", test.code)
			}
			w.WriteHeader(test.status)
			io.WriteString(w, test.body)
		})
		err := l.Check(t.Context())
		if test.want == "" && err != nil {
			t.Errorf("status %d: %v", test.status, err)
		} else if test.want != "" {
			wantCode(t, err, test.want, test.words...)
		}
	}
}

func TestDescribeAFunction(t *testing.T) {
	t.Parallel()
	denied := false
	l := lambdaServer(t, "resize:live", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/2015-03-31/functions/resize/configuration" ||
			r.URL.Query().Get("Qualifier") != "live" {
			t.Errorf("asked %s %s", r.Method, r.URL)
		}
		if denied {
			w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
			w.WriteHeader(403)
			io.WriteString(w, `{"Message":"no"}`)
			return
		}
		io.WriteString(w, `{"FunctionName":"resize","Timeout":42,"Version":"7","State":"Active"}`)
	})
	if got, err := l.FunctionTimeout(t.Context()); err != nil || got != 42*time.Second {
		t.Errorf("got %s, %v", got, err)
	}
	denied = true
	_, err := l.FunctionTimeout(t.Context())
	wantCode(t, err, queue.CodeAccessDenied, "lambda:GetFunctionConfiguration")
}

func TestLambdaSettings(t *testing.T) {
	_, err := OpenLambda(t.Context(), nil)
	wantCode(t, err, queue.CodeInvalidParameterValue, "use its name")
	_, err = OpenLambda(t.Context(), &LambdaOptions{Function: "resize"})
	wantCode(t, err, queue.CodeInvalidParameterValue, "no AWS region for Lambda function resize: set AWS_REGION")
	if l := openLambda(t,
		&LambdaOptions{Function: "arn:aws:lambda:eu-north-1:1:function:a"}); l.service.host != "Lambda in eu-north-1" {
		t.Errorf("the host is %s", l.service.host)
	}
	if _, err := OpenLambda(t.Context(), &LambdaOptions{Function: "a", Client: Options{Profile: "nobody"}}); err == nil ||
		!strings.Contains(err.Error(), "AWS_PROFILE") {
		t.Errorf("a profile that is not there: %v", err)
	}
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		w.WriteHeader(204)
	}))
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL_LAMBDA", server.URL)
	l := openLambda(t, &LambdaOptions{Function: "resize"})
	if err := l.Check(t.Context()); err != nil || <-asked != "/2015-03-31/functions/resize/invocations" {
		t.Errorf("got %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	_, err = openLambda(t, &LambdaOptions{Function: "resize"}).Invoke(t.Context(), nil, nil)
	wantCode(t, err, queue.CodeAccessDenied, "no AWS credentials")
	wantUnsent(t, err, true)
}

func wantUnsent(t *testing.T, err error, want bool) {
	t.Helper()
	var lost *invokeError
	if !errors.As(err, &lost) || lost.Unsent() != want {
		t.Errorf("got %#v, want unsent %v", err, want)
	}
}

func TestInvokeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	l := lambdaServer(t, "resize", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		cancel()
		<-r.Context().Done()
		close(ended)
	})
	_, err := l.Invoke(ctx, []byte("{}"), nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantUnsent(t, err, false)
	<-ended
	_, err = l.Invoke(ctx, []byte("{}"), nil)
	wantUnsent(t, err, true)
	if err := l.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsInvokedIfTheQueueWasPausedMeanwhile(t *testing.T) {
	t.Parallel()
	l := lambdaServer(t, "resize", func(http.ResponseWriter, *http.Request) { t.Error("the function was invoked") })
	paused := false
	l.api = newClient(lambda.New(l.api.get().Options(), func(o *lambda.Options) {
		o.Credentials = sdk.CredentialsProviderFunc(func(context.Context) (sdk.Credentials, error) {
			paused = true
			return sdk.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		})
	}))
	_, err := l.Invoke(t.Context(), []byte("{}"), func() bool { return paused })
	wantUnsent(t, err, true)
}

type memoryConn struct{ net.Conn }

func (memoryConn) Write(p []byte) (int, error) { return len(p), nil }

func TestErrorsReportWhetherACallWasSent(t *testing.T) {
	t.Parallel()
	tapped := func() *tappedConn { return &tappedConn{Conn: memoryConn{}} }
	lost := errors.New("lost")
	for _, test := range []struct {
		name        string
		next        func(got func(net.Conn, bool)) error
		left, stale bool
	}{
		{"no connection", func(func(net.Conn, bool)) error { return lost }, false, false},
		{"a new connection without a write", func(got func(net.Conn, bool)) error {
			got(tapped(), false)
			return lost
		}, false, false},
		{"a kept connection without a write", func(got func(net.Conn, bool)) error {
			got(tapped(), true)
			return lost
		}, false, true},
		{"a kept connection, written before", func(got func(net.Conn, bool)) error {
			c := tapped()
			c.Write(nil)
			got(c, true)
			return lost
		}, false, true},
		{"a kept connection, and a write", func(got func(net.Conn, bool)) error {
			c := tapped()
			got(c, true)
			c.Write(nil)
			return lost
		}, true, false},
		{"TLS without a write", func(got func(net.Conn, bool)) error {
			got(tls.Client(tls.Client(tapped(), nil), nil), true)
			return lost
		}, false, true},
		{"a connection that is not tapped", func(got func(net.Conn, bool)) error {
			got(memoryConn{}, true)
			return lost
		}, true, false},
		{"an answer", func(got func(net.Conn, bool)) error { got(tapped(), true); return nil }, true, false},
	} {
		var sent sending
		once := &onceTransport{next: roundTrip(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			err := test.next(func(c net.Conn, reused bool) { trace.GotConn(httptrace.GotConnInfo{Conn: c, Reused: reused}) })
			if err != nil {
				return nil, err
			}
			return reply(200, ""), nil
		})}
		ctx := context.WithValue(t.Context(), sendingKey{}, &sent)
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://x/", strings.NewReader("{}"))
		resp, err := once.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		if sent.left != test.left || sent.stale != test.stale {
			t.Errorf("%s: %+v (%v)", test.name, sent, err)
		}
	}
}

func TestSealedConnections(t *testing.T) {
	t.Parallel()
	for range 200 {
		var written atomic.Int64
		c := &tappedConn{Conn: countingConn{n: &written}}
		var writers sync.WaitGroup
		for range 4 {
			writers.Go(func() { _, _ = c.Write([]byte("x")) })
		}
		sealed := c.seal()
		writers.Wait()
		if written.Load() > sealed {
			t.Fatalf("%d writes went out, %d were counted at the seal", written.Load(), sealed)
		}
	}
}

type countingConn struct {
	net.Conn
	n *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) { c.n.Add(1); return len(p), nil }

func rewiredLambda(l *Lambda, transport http.RoundTripper) *lambda.Client {
	return lambda.New(l.api.get().Options(), func(o *lambda.Options) {
		o.HTTPClient = &http.Client{Transport: &onceTransport{next: transport}}
	})
}

func TestDeadConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	calls := 0
	l := openLambda(t, &LambdaOptions{Function: "resize", Client: Options{Region: "eu-west-1"}})
	l.api = newClient(rewiredLambda(l, roundTrip(func(r *http.Request) (*http.Response, error) {
		calls++
		httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: &tappedConn{Conn: memoryConn{}},
			Reused: calls < 3})
		if body, err := io.ReadAll(r.Body); calls < 4 || err != nil || string(body) != "{}" {
			return nil, errors.New("closed by the server")
		}
		return reply(200, "null"), nil
	})))
	_, err := l.Invoke(t.Context(), []byte("{}"), nil)
	wantUnsent(t, err, true)
	if calls != 3 {
		t.Errorf("%d calls", calls)
	}
	if got, err := l.Invoke(t.Context(), []byte("{}"), nil); err != nil || string(got.Payload) != "null" || calls != 4 {
		t.Errorf("got %+v, %v after %d calls", got, err, calls)
	}
}

func TestBoundedBodies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		body   string
		most   int64
		needed bool
		want   string
	}{
		{"12345", 5, false, ""}, {"123456", 5, false, "the response is larger than the service allows"},
		{"", 5, false, ""}, {"", 5, true, "unexpected EOF"}, {"1", 5, true, ""},
	} {
		b := &boundedBody{ReadCloser: io.NopCloser(bytes.NewBufferString(test.body)), left: test.most, needed: test.needed}
		got, err := io.ReadAll(b)
		if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want || err == nil &&
			string(got) != test.body {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}

func TestLargePayloads(t *testing.T) {
	t.Parallel()
	payload, _ := json.Marshal(strings.Repeat("é\"", 1<<20))
	l := lambdaServer(t, "resize", func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(body, payload) ||
			r.ContentLength != int64(len(payload)) {
			t.Errorf("%d bytes of %d came: %v", len(body), len(payload), err)
		}
		io.WriteString(w, "null")
	})
	if _, err := l.Invoke(t.Context(), payload, nil); err != nil {
		t.Error(err)
	}
}
