package environment

import (
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tendril/internal/config"
	"tendril/internal/observe/logging"
	"tendril/internal/testing/testpeer"
)

const patience = 2 * time.Minute

func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !ask() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

type running struct {
	*Environment
	log  *safeBuffer
	stop context.CancelFunc
	done chan error
}

// change may be nil.
func run(t *testing.T, flags map[string]string, change func(*Environment)) *running {
	t.Helper()
	given := map[string]string{"data-dir": t.TempDir(), "listen": "127.0.0.1:0", "console": "127.0.0.1:0"}
	for name, value := range flags {
		given[name] = value
	}
	cfg, err := config.Load(config.Sources{Flags: given, Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	log := &safeBuffer{}
	e := New(Options{Config: cfg, Logger: logging.New(logging.Options{Out: log, Level: slog.LevelDebug}), Version: "test"})
	e.observe.monitor = e.observe.newMonitor(nil) // a busy machine would change the health
	if change != nil {
		change(e)
	}
	stop, cancel := context.WithCancel(context.Background())
	r := &running{e, log, cancel, make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.done <- e.Run(stop, context.Background())
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Log(log)
		}
	})
	eventually(t, "the start", func() bool {
		select {
		case err := <-r.done:
			t.Fatalf("it ended: %v\n%s", err, log)
		default:
		}
		return e.life.running()
	})
	return r
}

func (r *running) end() error {
	r.stop()
	return <-r.done
}

// amazon simulates AWS with moto, and records calls of the two lifecycle actions, which moto does not support.
type amazon struct {
	*httptest.Server
	mu    sync.Mutex
	calls []url.Values
	puts  []string
	// changes records calls that create or delete something, as "CreateQueue BODY".
	changes []string
}

var changesResources = regexp.MustCompile(`\.((?:Create|Delete)(?:Queue|Table))$`)

func startCloud(t *testing.T) *amazon {
	t.Helper()
	moto, err := url.Parse(testpeer.Moto(t, "sqs", "autoscaling", "cloudwatch", "dynamodb",
		"ecs", "applicationautoscaling"))
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(moto)
	forward.ErrorLog = log.New(io.Discard, "", 0)
	c := &amazon{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		form, _ := url.ParseQuery(string(body)) // fails for other protocols, whose calls are not parsed
		c.mu.Lock()
		if strings.Contains(r.Header.Get("X-Amz-Target"), "PutMetricData") {
			c.puts = append(c.puts, string(body))
		}
		if call := changesResources.FindStringSubmatch(r.Header.Get("X-Amz-Target")); call != nil {
			c.changes = append(c.changes, call[1]+" "+string(body))
		}
		ours := strings.Contains(form.Get("Action"), "LifecycleAction")
		if ours {
			c.calls = append(c.calls, form)
		}
		c.mu.Unlock()
		if ours {
			io.WriteString(w, "<"+form.Get("Action")+"Response><"+form.Get("Action")+"Result/></"+form.Get("Action")+"Response>")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": c.URL, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-west-1",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	return c
}

func (a *amazon) reset(t *testing.T) {
	t.Helper()
	res, err := http.Post(a.URL+"/moto-api/reset", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls, a.puts, a.changes = nil, nil, nil
}

func (a *amazon) lifecycle() []url.Values {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls
}

func (a *amazon) metrics() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.puts, "\n")
}

func (a *amazon) changed() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	changes := a.changes
	a.changes = nil
	return changes
}

func (a *amazon) ask(t *testing.T, service, action string, args ...string) string {
	t.Helper()
	form := url.Values{"Action": {action}, "Version": {"2011-01-01"}}
	for i := 0; i < len(args); i += 2 {
		form.Set(args[i], args[i+1])
	}
	req, err := http.NewRequest(http.MethodPost, a.URL+"/", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization",
		"AWS4-HMAC-SHA256 Credential=test/20260101/eu-west-1/"+service+"/aws4_request, SignedHeaders=host, Signature=none")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s (%v)", action, res.Status, answer, err)
	}
	return string(answer)
}
