package aws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
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

// failingConn is a connection whose next write fails once failing is set, after it has sent accepted bytes.
type failingConn struct {
	net.Conn
	failing  *atomic.Bool
	accepted int
}

func (c failingConn) Write(p []byte) (int, error) {
	if !c.failing.Load() {
		return c.Conn.Write(p)
	}
	n, _ := c.Conn.Write(p[:c.accepted])
	c.Conn.Close()
	return n, errors.New("lost")
}

func TestDeadConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		secure      bool // TLS
		fresh       bool // the first call fails
		accepted    int
		unreachable bool // after the first connection
		ok, unsent  bool
	}{
		{name: "a kept connection that accepts nothing is replaced", ok: true},
		{name: "no other connection", unreachable: true, unsent: true},
		{name: "a kept connection that accepts a byte", accepted: 1},
		{name: "a new connection that fails", fresh: true, accepted: 1},
		{name: "a kept TLS connection that accepts nothing is replaced", secure: true, ok: true},
		{name: "a kept TLS connection that accepts part of a record, which the server cannot read, is replaced", secure: true,
			accepted: 20, ok: true},
	} {
		var invocations atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); err == nil && string(body) == "{}" {
				invocations.Add(1)
			}
			io.WriteString(w, "null")
		}))
		if test.secure {
			server.StartTLS()
		} else {
			server.Start()
		}
		defer server.Close()
		l := openLambda(t, &LambdaOptions{Function: "resize", Client: Options{Region: "eu-west-1", Endpoint: server.URL}})
		l.service.exchanger.transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
		var failing atomic.Bool
		failing.Store(test.fresh)
		dials := 0
		dial := l.service.exchanger.transport.DialContext
		l.service.exchanger.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			if dials > 1 && test.unreachable {
				return nil, errors.New("unreachable")
			}
			conn, err := dial(ctx, network, address)
			if dials > 1 || err != nil {
				return conn, err
			}
			return failingConn{conn, &failing, test.accepted}, nil
		}

		want := int64(0)
		if !test.fresh {
			want++
			if _, err := l.Invoke(t.Context(), []byte("{}"), nil); err != nil {
				t.Fatalf("%s: the first call: %v", test.name, err)
			}
			failing.Store(true)
		}
		_, err := l.Invoke(t.Context(), []byte("{}"), nil)
		if test.ok {
			want++
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		} else {
			wantUnsent(t, err, test.unsent)
		}
		if got := invocations.Load(); got != want {
			t.Errorf("%s: %d invocations, want %d", test.name, got, want)
		}
	}
}

// http.Transport does not repeat a call itself if the server closes a kept connection just before it.
func TestConnectionsClosedJustBeforeACallAreReplaced(t *testing.T) {
	t.Parallel()
	closed := errors.New("http: server closed idle connection")
	kept := func(trace *httptrace.ClientTrace) {
		trace.GetConn("x:443")
		trace.GotConn(httptrace.GotConnInfo{Reused: true})
	}
	for _, test := range []struct {
		name   string
		try    func(trace *httptrace.ClientTrace, n int) error
		tries  int
		ok     bool
		unsent bool
	}{
		{name: "two kept connections", try: func(trace *httptrace.ClientTrace, n int) error {
			if kept(trace); n <= 2 {
				return closed
			}
			return nil
		}, tries: 3, ok: true},
		{name: "a kept and a new one", try: func(trace *httptrace.ClientTrace, n int) error {
			if kept(trace); n == 2 {
				trace.GotConn(httptrace.GotConnInfo{})
			}
			return closed
		}, tries: 2, unsent: true},
		{name: "a kept one, then none", try: func(trace *httptrace.ClientTrace, n int) error {
			if kept(trace); n == 2 {
				trace.GetConn("x:443")
			}
			return closed
		}, tries: 2, unsent: true},
		{name: "a kept one, then an error before a connection is needed", try: func(trace *httptrace.ClientTrace, n int) error {
			if n == 1 {
				kept(trace)
			}
			return closed
		}, tries: 2, unsent: true},
		{name: "a kept one that a header was written to", try: func(trace *httptrace.ClientTrace, n int) error {
			kept(trace)
			trace.WroteHeaderField("Host", nil)
			return closed
		}, tries: 1},
	} {
		tries := 0
		l := openLambda(t, &LambdaOptions{Function: "resize", Client: Options{Region: "eu-west-1"}})
		l.api = newClient(lambda.New(l.api.get().Options(), func(o *lambda.Options) {
			o.HTTPClient = &http.Client{Transport: &onceTransport{next: roundTrip(func(r *http.Request) (*http.Response, error) {
				tries++
				if tries > 3 {
					t.Fatalf("%s: the call does not end", test.name)
				}
				if body, err := io.ReadAll(r.Body); err != nil || string(body) != "{}" {
					t.Errorf("%s: try %d: %q, %v", test.name, tries, body, err)
				}
				if err := test.try(httptrace.ContextClientTrace(r.Context()), tries); err != nil {
					return nil, err
				}
				return reply(200, "null"), nil
			})}}
		}))
		_, err := l.Invoke(t.Context(), []byte("{}"), nil)
		if !test.ok {
			wantUnsent(t, err, test.unsent)
		} else if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if tries != test.tries {
			t.Errorf("%s: %d tries, want %d", test.name, tries, test.tries)
		}
	}
}

func TestCallWithoutAConnectionIsUnsent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() { // accepts TLS connections, but ends each handshake
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	l := openLambda(t, &LambdaOptions{Function: "resize", Client: Options{Region: "eu-west-1",
		Endpoint: "https://" + listener.Addr().String()}})
	_, err = l.Invoke(t.Context(), []byte("{}"), nil)
	wantUnsent(t, err, true)
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
