package tasks

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tendril/broker"
	"tendril/internal/aws"
	"tendril/internal/registry/registrytest"
)

func TestTimeToLiveWithoutPermission(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#AccessDeniedException","message":"said Amazon"}`)
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	table, err := aws.OpenTable(t.Context(), "registry", &aws.Options{Region: "eu-west-1", Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)

	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	logged := func(level string) bool {
		got := text.String()
		return strings.Count(got, "\n") == 1 && strings.Contains(got, level) && strings.Contains(got, "said Amazon")
	}
	warnWithoutExpiry(t.Context(), table, "registry", log)
	if !logged("level=DEBUG") {
		t.Errorf("reading the setting logged %s", text.String())
	}
	text.Reset()
	enableExpiry(t.Context(), table, "registry", log)
	if !logged("level=WARN") {
		t.Errorf("changing the setting logged %s", text.String())
	}
}

func TestARunIsKnownWithItsPathOnly(t *testing.T) {
	t.Parallel()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if err := b.CreateQueue(t.Context(), "jobs", nil, nil); err != nil {
		t.Fatal(err)
	}
	m := New(Options{Registry: RegistryOptions{Queue: "jobs", Broker: b, Local: true}})
	run := registrytest.Run("audit", 1)
	if known, err := m.Known(t.Context(), run.ID, run.Path); known || err != nil {
		t.Errorf("without a registry the run is known: %v, %v", known, err)
	}
	reg, err := m.registry.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reg.runs.Enqueue(t.Context(), 1, run); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/audit": true, "/admin": false} {
		if known, err := m.Known(t.Context(), run.ID, path); known != want || err != nil {
			t.Errorf("a run with the path %q is known: %v, %v", path, known, err)
		}
	}
}
