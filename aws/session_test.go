package aws

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// TestSDKLogsToUs: what the SDK's clients log goes to who opened them, line by line
// and with a level, and nothing of it to the process's own stderr.
func TestSDKLogsToUs(t *testing.T) {
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
		w.Header().Set("X-Amz-Crc32", "1") // not that of the body
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
		if _, err := table.Read(t.Context(), "l"); err == nil {
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
