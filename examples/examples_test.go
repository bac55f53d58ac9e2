package examples

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

// The test runs the Python example like its Procfile and posts like a worker daemon.
func TestReports(t *testing.T) {
	t.Parallel()
	python := testpeer.Program(t, "python3")
	out := t.TempDir()
	port := testpeer.FreePort(t)
	cmd := exec.CommandContext(t.Context(), python, "application.py")
	cmd.Dir = "reports"
	cmd.Env = append(os.Environ(), "PORT="+port, "REPORTS_DIR="+out, "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	waitFor(t, "127.0.0.1:"+port)
	orders, err := os.ReadFile("reports/orders.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(orders), "\n")
	for _, step := range []struct {
		id, body, answer string
		status           int
	}{
		{"m-1", first, "written", 200},
		{"m-1", first, "done before", 200},
		{"m-2", "no order", "not an order", 422},
		{"m-3", `{"customer":"x"}`, "not an order", 422},
	} {
		status, answer := post(t, "http://127.0.0.1:"+port+"/", step.id, step.body)
		if status != step.status || !strings.Contains(answer, step.answer) {
			t.Errorf("%s: %d %q, want %d and %q", step.id, status, answer, step.status, step.answer)
		}
	}
	report, err := os.ReadFile(filepath.Join(out, "m-1.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(report), "Ada,total,,10080") {
		t.Errorf("report: %s", report)
	}
	if files, _ := filepath.Glob(filepath.Join(out, "*")); len(files) != 1 {
		t.Errorf("files %v, want the one report", files)
	}
}

func waitFor(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("nobody listens on %s: %v", address, err)
		}
	}
}

func post(t *testing.T, url, id, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Aws-Sqsd-Msgid", id)
	req.Header.Set("X-Aws-Sqsd-Receive-Count", "1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}
