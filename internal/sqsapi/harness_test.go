package sqsapi

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tendril/broker"
	"tendril/internal/testing/testpeer"
)

var update = flag.Bool("update", false, "rewrite the golden files with what the handler answers now")

func TestMain(m *testing.M) { goleak.VerifyTestMain(testpeer.Contained(m)) }

func newHandler(t testing.TB, opts *Options) *Handler {
	t.Helper()
	return New(newBroker(t, nil), opts)
}

func newBroker(t testing.TB, opts *broker.Options) *broker.Broker {
	t.Helper()
	b, err := broker.Open(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("closing the broker: %v", err)
		}
	})
	return b
}

func newServer(t testing.TB, h *Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config = Server(h)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

func call(h http.Handler, action, body string) *httptest.ResponseRecorder {
	return callContext(context.Background(), h, action, body)
}

func callContext(ctx context.Context, h http.Handler, action, body string) *httptest.ResponseRecorder {
	return serve(h, newRequest(ctx, action, body))
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func newRequest(ctx context.Context, action, body string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
	r.Host = "localhost:9324"
	r.Header.Set("X-Amz-Target", sqsPrefix+action)
	r.Header.Set("Content-Type", jsonType)
	return r
}

func mustCall(t testing.TB, h http.Handler, action, body string) string {
	t.Helper()
	w := call(h, action, body)
	if w.Code != http.StatusOK {
		t.Fatalf("%s %s: status %d, %s", action, body, w.Code, w.Body)
	}
	return w.Body.String()
}
