package aws

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"tendril/internal/registry"
)

func TestSDKLogsToTheOption(t *testing.T) {
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(k, v)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = w
	t.Cleanup(func() { os.Stderr = stderr })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Crc32", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	var mu sync.Mutex
	var lines []string
	log := func(level slog.Level, text string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, level.String()+" "+text)
	}
	for _, take := range []LogFunc{log, nil} {
		table, err := OpenTable(t.Context(), "registry", &Options{Endpoint: server.URL, Log: take})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := table.Read(t.Context(), registry.KindLease, "l"); err == nil {
			t.Error("no error")
		}
		table.Close()
	}
	w.Close()
	said := make([]byte, 4096)
	if n, _ := r.Read(said); n > 0 {
		t.Errorf("on stderr: %s", said[:n])
	}
	mu.Lock()
	defer mu.Unlock()
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "WARN failed to close HTTP response body") {
		t.Errorf("logged %q", lines)
	}
}

type closingTransport struct {
	close func() error
	sent  []byte
}

func (c *closingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := c.close(); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(req.Body)
	c.sent = body
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, err
}

type closableBody struct {
	io.Reader
	closed bool
}

func (b *closableBody) Read(p []byte) (int, error) {
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.Reader.Read(p)
}

func (b *closableBody) Close() error { b.closed = true; return nil }

func TestBodyThatIsClosedEarlyIsSentWhole(t *testing.T) {
	t.Parallel()
	body := &closableBody{Reader: strings.NewReader("all of it")}
	next := &closingTransport{close: body.Close}
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1:9/", body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (wholeBodies{next}).RoundTrip(req); err != nil || string(next.sent) != "all of it" || !body.closed {
		t.Errorf("sent %q, closed %v: %v", next.sent, body.closed, err)
	}
}
