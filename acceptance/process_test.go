package acceptance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"tendril/internal/testing/testpeer"
)

var binary string

func TestMain(m *testing.M) {
	if known, err := play(os.Getenv("ACCEPTANCE_ROLE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	} else if known {
		return
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "tendril-acceptance")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if binary = os.Getenv("ACCEPTANCE_BINARY"); binary != "" { // with mutations that tests must detect
			return m.Run()
		}
		binary = filepath.Join(dir, "tendril")
		if out, err := exec.Command("go", "build", "-o", binary, "tendril/cmd/tendril").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building tendril: %v\n%s", err, out)
			return 1
		}
		testpeer.Parallel(4)
		code := testpeer.Contained(m).Run()
		if dir := nightlyFolder(); dir != "" {
			if err := writeNightlyTable(dir); err != nil {
				fmt.Fprintln(os.Stderr, "writing the night's results:", err)
				code = max(code, 1)
			}
		}
		return code
	}())
}

// program calls stat for all source files, because go test caches results and does not know that TestMain builds the
// program from them.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if err := lookAtSources(); err != nil {
		t.Fatal(err)
	}
	return exec.Command(binary, args...)
}

var lookAtSources = sync.OnceValue(func() error {
	return filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a folder of another test
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(name, ".") || name == "testdata"):
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		_, err = os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a file of another test
		}
		return err
	})
})

type event struct {
	Msg       string `json:"msg"`
	Level     string `json:"level"`
	Status    any    `json:"status"`
	MessageID string `json:"message_id"`
	Outcome   string `json:"outcome"`
	Reason    string `json:"reason"`
	Endpoint  string `json:"endpoint"`
	QueueURL  string `json:"queue_url"`
	Console   string `json:"console"`
	Line      string `json:"line"`
	Process   string `json:"process"`
	raw       string
}

func (e *event) attribute(key string) string {
	all := map[string]any{}
	if json.Unmarshal([]byte(e.raw), &all) != nil || all[key] == nil {
		return ""
	}
	return fmt.Sprint(all[key])
}

type process struct {
	cmd    *exec.Cmd
	output *testpeer.Output
	stderr *testpeer.Output
	exited chan struct{}

	mu     sync.Mutex
	events []event
	news   chan struct{}
}

func start(t *testing.T, args ...string) (*process, event) {
	t.Helper()
	p := launch(t, args...)
	return p, p.await(t, "it started", func(e event) bool { return e.Msg == "started" })
}

func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("this takes more than ten seconds: not with -short")
	}
}

func minutes(t *testing.T) {
	t.Helper()
	if long(t); os.Getenv("TENDRIL_REQUIRE_PEERS") != "1" {
		t.Skip("this takes minutes: set TENDRIL_REQUIRE_PEERS=1 for it, as .ci/run does")
	}
}

func startWith(t *testing.T, env []string, args ...string) (*process, event) {
	t.Helper()
	p := launchWith(t, env, args...)
	return p, p.await(t, "it started", func(e event) bool { return e.Msg == "started" })
}

func launch(t *testing.T, args ...string) *process {
	t.Helper()
	return launchWith(t, nil, args...)
}

func launchWith(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return launchIn(t, "", env, args...)
}

func launchIn(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	cmd := program(t, args...)
	cmd.Dir, cmd.Env = dir, env
	return launchCommand(t, cmd)
}

func launchCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, output: new(testpeer.Output), stderr: new(testpeer.Output), exited: make(chan struct{}),
		news: make(chan struct{})}
	env := cmd.Env
	p.cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_REGION=us-east-1",
		"AWS_EC2_METADATA_DISABLED=true", "XDG_CONFIG_HOME="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir())
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stderr = io.MultiWriter(p.output, p.stderr)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(out)
	t.Cleanup(func() {
		if t.Failed() {
			p.cmd.Process.Signal(syscall.SIGTERM) // the process logs why it does not stop
			select {
			case <-p.exited:
			case <-time.After(20 * time.Second):
			}
		}
		p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("tendril %v: %v\n%s", p.cmd.Args[1:], p.cmd.ProcessState, p.output)
		}
	})
	return p
}

func (p *process) read(out io.Reader) {
	lines := bufio.NewScanner(io.TeeReader(out, p.output))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			e.Msg = lines.Text()
		}
		e.raw = lines.Text()
		p.mu.Lock()
		p.events = append(p.events, e)
		close(p.news)
		p.news = make(chan struct{})
		p.mu.Unlock()
	}
	p.cmd.Wait()
	close(p.exited)
}

func (p *process) await(t *testing.T, what string, wanted func(event) bool) event {
	t.Helper()
	deadline := time.After(waitsFor())
	for next, exited := 0, false; ; {
		p.mu.Lock()
		seen, news := p.events, p.news
		p.mu.Unlock()
		for ; next < len(seen); next++ {
			if wanted(seen[next]) {
				return seen[next]
			}
		}
		if exited {
			t.Fatalf("tendril ended before %s: %v", what, p.cmd.ProcessState)
		}
		select {
		case <-news:
		case <-p.exited:
			exited = true // after its last events
		case <-deadline:
			t.Fatalf("it was not seen in time that %s", what)
		}
	}
}

// waitsFor returns a shorter time for mutants, because they may prevent the event.
func waitsFor() time.Duration {
	if os.Getenv("TENDRIL_MUTANT") != "" {
		return 6 * time.Second
	}
	return time.Minute
}

func (p *process) count(wanted func(event) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, e := range p.events {
		if wanted(e) {
			n++
		}
	}
	return n
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.exited
}

func (p *process) terminate(t *testing.T) int {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(2 * time.Minute):
		t.Fatalf("tendril did not end within two minutes of TERM")
		return -1
	}
}

// client does not retry, so each acknowledgement belongs to one call.
func client(endpoint string) *sqs.Client {
	return sqs.New(sqs.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		// Not http.DefaultTransport: closing any httptest server closes its idle connections.
		Retryer: aws.NopRetryer{}, HTTPClient: &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second},
	})
}

func createQueue(t *testing.T, c *sqs.Client, name string, attrs map[string]string) string {
	t.Helper()
	out, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attrs})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}

func attributes(ctx context.Context, t *testing.T, c *sqs.Client, url string) map[string]string {
	t.Helper()
	out, err := c.GetQueueAttributes(ctx,
		&sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqsAttribute{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes
}
