package acceptance

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"tendril/internal/testing/testpeer"
)

type shop struct {
	*process
	t       *testing.T
	dir     string
	started event
}

func open(t *testing.T, dir string, env []string, args ...string) *shop {
	t.Helper()
	args = append([]string{"up", "--data-dir", dir, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0"}, args...)
	p := launchIn(t, dir, env, args...)
	// The log format for terminals has no event "started".
	return &shop{p, t, dir, p.await(t, "it started", func(e event) bool {
		return e.Msg == "started" || strings.Contains(e.Msg, " · receiving started")
	})}
}

func (s *shop) do(args ...string) (output string, code int) {
	s.t.Helper()
	return tendril(s.t, s.dir, nil, append(args, "--data-dir", s.dir)...)
}

func (s *shop) must(args ...string) string {
	s.t.Helper()
	out, code := s.do(args...)
	if code != 0 {
		s.t.Fatalf("tendril %v: %d\n%s", args, code, out)
	}
	return out
}

func typedLine(t *testing.T, text, start string) []string {
	t.Helper()
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "tendril "+start) {
			continue
		}
		var args []string
		for _, w := range shellWords.FindAllString(line, -1)[1:] {
			args = append(args, strings.Trim(w, "'"))
		}
		return args
	}
	t.Fatalf("the page has no line that begins with tendril %s", start)
	return nil
}

var (
	ids     = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	numbers = regexp.MustCompile(`\d+(\.\d+)?(ms|µs|s|m)?`)
	version = regexp.MustCompile(`tendril [^ ]+, process`)
	rates   = regexp.MustCompile(`, [\d.]+/s`)
	blanks  = regexp.MustCompile(` +`)
)

func shape(text string) string {
	text = version.ReplaceAllString(ids.ReplaceAllString(text, "ID"), "tendril VERSION, process")
	text = rates.ReplaceAllString(text, "")
	return blanks.ReplaceAllString(numbers.ReplaceAllString(text, "N"), " ")
}

func TestLambdaPageGo(t *testing.T) {
	t.Parallel()
	text, dir := page(t, "docs/lambda.md"), t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "bin", "resize"),
		"tendril/examples/lambda-resize").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var photo bytes.Buffer
	if err := png.Encode(&photo, image.NewGray(image.Rect(0, 0, 64, 48))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "photo.png"), photo.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, nil, typedLine(t, text, "up --queues jobs --lambda ./bin/resize")[1:]...)
	out := s.must(typedLine(t, text, `send --queue jobs --wait '{"source":"photo.png"`)...)
	indented := strings.ReplaceAll(text, "\n   ", "\n")
	if want := shape(fenced(t, indented, "message 2230e769")); !strings.Contains(shape(out), want) {
		t.Errorf("%s\nwant\n%s", out, want)
	}
	small, err := os.ReadFile(filepath.Join(dir, "small.png"))
	if err != nil {
		t.Fatal(err)
	}
	if made, err := png.DecodeConfig(bytes.NewReader(small)); err != nil || made.Width != 32 || made.Height != 24 {
		t.Errorf("%+v, %v", made, err)
	}
	out, code := s.do(typedLine(t, text, `send --queue jobs --wait '{"source":"nothing.png"`)...)
	if want := shape(fenced(t, indented, "message 2da64e0d")); code != 1 ||
		!strings.Contains(shape(out), want) {
		t.Errorf("%d %s\nwant 1 and\n%s", code, out, want)
	}
	if code := s.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func TestLambdaPagePython(t *testing.T) {
	t.Parallel()
	testpeer.Program(t, "python3")
	text, dir := page(t, "docs/lambda.md"), t.TempDir()
	examples, err := filepath.Abs("../examples")
	if err == nil {
		err = os.Symlink(examples, filepath.Join(dir, "examples"))
	}
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, nil, typedLine(t, text, "up --queues orders --lambda")[1:]...)
	s.must(typedLine(t, text, "send --queue orders --wait")...)
	receipts, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(receipts) != 1 {
		t.Fatalf("%v, %v", receipts, err)
	}
	if receipt, err := os.ReadFile(receipts[0]); err != nil || string(receipt) != "Ada: 25.00\n" {
		t.Errorf("%q, %v", receipt, err)
	}
}

func TestQueuesPageStatus(t *testing.T) {
	t.Parallel()
	text := page(t, "docs/queues.md")
	app := newScript(t, func(w http.ResponseWriter, _ *http.Request, _ posted) { w.WriteHeader(http.StatusOK) })
	s := open(t, t.TempDir(), nil, "--queues", "payments,submissions,default", "--target", app.URL)
	for range 3 {
		s.must("send", "--queue", "payments", "--wait", "{}")
	}
	s.must(typedLine(t, text, "queues pause")...)
	s.must("send", "--queue", "default", "waits")
	out := s.must("status")
	first := shape("tendril: running, ready, PAUSED by owner since 14:02 UTC: database upgrade (default)")
	if !strings.HasPrefix(shape(out), first) || !strings.Contains(shape(text), first) {
		t.Errorf("the first line is not %s:\n%s", first, out)
	}
	_, queues, _ := strings.Cut(out, "\nQUEUE ")
	if want := fenced(t, text, "QUEUE "); strings.TrimSpace(shape("QUEUE "+queues)) != strings.TrimSpace(shape(want)) {
		t.Errorf("%s\nwant\n%s", out, want)
	}
	if n := len(app.all()); n != 3 {
		t.Errorf("%d POSTs while the queue is paused, want 3", n)
	}
	s.must(typedLine(t, text, "queues resume")...)
	app.await(t, "the paused message comes", func(all []posted) bool {
		return len(all) == 4 && all[3].header.Get("X-Aws-Sqsd-Queue") == "default"
	})
}

func TestQueuesPageTask(t *testing.T) {
	t.Parallel()
	text, dir := page(t, "docs/queues.md"), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cron.yaml"), []byte(fenced(t, text, "version: 1")), 0o644); err != nil {
		t.Fatal(err)
	}
	app := newScript(t, func(w http.ResponseWriter, _ *http.Request, _ posted) { w.WriteHeader(http.StatusOK) })
	s := open(t, dir, nil, "--queues", "payments:3,default:1", "--cron", "cron.yaml", "--target", app.URL)
	s.must("tasks", "run", "every-minute")
	app.await(t, "the task comes on its own queue", func(all []posted) bool {
		return len(all) > 0 && all[0].location == "/tick" && all[0].header.Get("X-Aws-Sqsd-Queue") == "ticks"
	})
	if out := s.must("queues", "list"); !regexp.MustCompile(`(?m)^ticks .* ticks-dead`).MatchString(out) {
		t.Errorf("the queue of the task has no dead-letter queue:\n%s", out)
	}
}

func TestQueuesPageOwnSettings(t *testing.T) {
	t.Parallel()
	ok := func(w http.ResponseWriter, _ *http.Request, _ posted) { w.WriteHeader(http.StatusOK) }
	one, other := newScript(t, ok), newScript(t, ok)
	dir := t.TempDir()
	settings := "target: " + one.URL + "\nqueues:\n  - name: payments\n    weight: 3\n    http_path: /payments\n" +
		"  - name: emails.fifo\n    weight: 2\n    http_path: /emails\n    mime_type: text/plain\n  - name: invoices\n" +
		"    weight: 1\n    http_path: /invoices\n    target: " + other.URL + "\n"
	if err := os.WriteFile(filepath.Join(dir, "tendril.yaml"), []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, nil)
	s.must("send", "--queue", "payments", "--wait", "{}")
	s.must("send", "--queue", "emails.fifo", "--group", "a", "--dedup", "1", "--wait", "hello")
	s.must("send", "--queue", "invoices", "--wait", "{}")
	var got []string
	for _, p := range append(one.all(), other.all()...) {
		got = append(got, p.header.Get("X-Aws-Sqsd-Queue")+" "+p.location+" "+p.header.Get("Content-Type"))
	}
	want := "payments /payments application/json, emails.fifo /emails text/plain, invoices /invoices application/json"
	if strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGuideNotification(t *testing.T) {
	t.Parallel()
	app := newScript(t, func(w http.ResponseWriter, _ *http.Request, _ posted) { w.WriteHeader(http.StatusOK) })
	s := open(t, t.TempDir(), nil, "--queue", "jobs", "--via-sns", "--target", app.URL)
	var envelope bytes.Buffer
	if err := json.Compact(&envelope,
		[]byte(fenced(t, page(t, "docs/amazon-sqs.md"), "{\n  \"Type\": \"Notification\""))); err != nil {
		t.Fatal(err)
	}
	s.must("send", "--wait", envelope.String())
	const parent, xray = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
	text := "String"
	if _, err := client(s.started.Endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &s.started.QueueURL, MessageBody: new("raw"),
		MessageAttributes: map[string]types.MessageAttributeValue{"traceparent": {DataType: &text,
			StringValue: new(parent)}},
		MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{"AWSTraceHeader": {DataType: &text,
			StringValue: new(xray)}},
	}); err != nil {
		t.Fatal(err)
	}
	all := app.await(t, "both come", func(all []posted) bool { return len(all) == 2 })
	if p := all[0]; p.body != `{"order":42}` || p.header.Get("X-Aws-Sqsd-Attr-Tenant") != "acme" ||
		p.header.Get("X-Aws-Sqsd-Attr-Sns-Subject") != "new order" ||
		p.header.Get("X-Aws-Sqsd-Attr-Sns-Topic-Arn") != "arn:aws:sns:us-west-2:123456789012:orders" ||
		p.header.Get("X-Aws-Sqsd-Attr-Sns-Message-Id") == "" {
		t.Errorf("%q %v", p.body, p.header)
	}
	if p := all[1]; p.body != "raw" || p.header.Get("Traceparent") != parent || p.header.Get("X-Amzn-Trace-Id") != xray {
		t.Errorf("%q %v", p.body, p.header)
	}
}

func TestGuideLogs(t *testing.T) {
	t.Parallel()
	sqsd := fenced(t, page(t, "docs/observe.md"), "2026-11-20T17:07:51Z message: sent")
	limits := fenced(t, page(t, "docs/protect.md"), "17:07:50 · limit delays messages")
	rate, breaker, _ := strings.Cut(limits, "\n")
	for name, c := range map[string]struct {
		lines string
		args  []string
	}{
		"rate":    {sqsd + rate, []string{"--rate", "10"}},
		"breaker": {breaker, []string{"--breaker", "50", "--breaker-delay", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := newScript(t, func(w http.ResponseWriter, _ *http.Request, _ posted) {
				w.WriteHeader(http.StatusInternalServerError)
			})
			s := open(t, t.TempDir(), nil,
				append(c.args, "--queue", "jobs", "--log-format", "sqsd", "--error-visibility-timeout", "1", "--target",
					app.URL)...)
			file := filepath.Join(s.dir, "work.ndjson")
			if err := os.WriteFile(file, []byte(strings.Repeat("{}\n", 60)), 0o644); err != nil {
				t.Fatal(err)
			}
			s.must("send", "--ndjson", "--file", file)
			for line := range strings.Lines(c.lines) {
				want := anywhere(strings.TrimSpace(line))
				s.await(t, line, func(e event) bool { return anywhere(e.Msg) == want })
			}
		})
	}
}

func anywhere(line string) string {
	return regexp.MustCompile(`http://[^ ]+/`).ReplaceAllString(shape(line), "URL")
}

func TestWorkerlessName(t *testing.T) {
	t.Parallel()
	_, served := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off")
	a := newArena(t, served.Endpoint)
	calls := make(chan string, 100)
	watch := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- string(body)
	}))
	t.Cleanup(watch.Close)
	lambda := httptest.NewServer(http.HandlerFunc(a.invoke))
	t.Cleanup(lambda.Close)
	env := []string{"AWS_ENDPOINT_URL_SQS=" + a.endpoint, "AWS_ENDPOINT_URL_LAMBDA=" + lambda.URL,
		"AWS_ENDPOINT_URL_CLOUDWATCH=" + watch.URL, "TENDRIL_CONSOLE=127.0.0.1:0"}
	a.fill(1)
	p, _ := startWith(t, env, "up", "--function=my-function", "--queues=payments,submissions,default",
		"--name=my-app-staging", "--metrics-interval=1")
	a.await(3)
	p.await(t, "all are settled", func(event) bool {
		return p.count(func(e event) bool { return e.Outcome == "done" }) == 3
	})
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	watch.Close() // waits for requests
	close(calls)
	all := ""
	for c := range calls {
		if !strings.Contains(c, "Workerless-my-app-staging") {
			t.Errorf("a call without the namespace: %q", c)
		}
		all += c
	}
	for _, want := range []string{"MessagesProcessed", "MessagesFailed", "Duration", "payments", "submissions",
		"default"} {
		if !strings.Contains(all, want) {
			t.Errorf("CloudWatch was not told of %s: %q", want, all)
		}
	}
}
