package acceptance

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"tendril/internal/testing/testpeer"
)

var update = flag.Bool("update", false, "rewrite testdata/bundles/*.check")

const railsSecret, djangoSecret = "s3krit", "not a secret"

type frameworkBundle struct {
	name string
	// programs returns a PATH with the required programs, or stand-ins for missing ones.
	programs       func(t *testing.T) (path string)
	body           string
	attributes     map[string]string
	path           string
	refused        string
	refusedStatus  int
	task, taskPath string
}

func frameworkBundles() []frameworkBundle {
	standIns := func(t *testing.T) string { testpeer.Program(t, "python3"); return "" }
	job := `{"job_class":"CleanupJob","arguments":[]}`
	return []frameworkBundle{{
		name: "node", body: `{"order":1}`, path: "/", task: "nightly", taskPath: "/scheduled",
		programs: func(t *testing.T) string { testpeer.Program(t, "npm"); return "" },
	}, {
		name: "django", body: `{"order":1}`, path: "/worker/", task: "cleanup", taskPath: "/worker/cleanup/",
		programs: func(t *testing.T) string {
			return filepath.Dir(testpeer.Python(t, "pip install Django gunicorn", "django", "gunicorn"))
		},
	}, {
		name: "rails", programs: standIns, body: job, path: "/", task: "CleanupJob", taskPath: "/periodic_tasks",
		attributes: map[string]string{"origin": "AEJ", "message-digest": railsDigest(job)},
		refused:    `{"job_class":"Forged"}`, refusedStatus: 403,
	}, {
		name: "laravel", programs: standIns, path: "/worker/queue", task: "schedule", taskPath: "/worker/schedule",
		body:    `{"job":"Illuminate\\Queue\\CallQueuedHandler@call","data":{"commandName":"App\\Jobs\\Resize"}}`,
		refused: "no JSON", refusedStatus: 500,
	}, {
		name: "spring", programs: standIns, body: `{"order":"1"}`, path: "/messages", task: "report",
		taskPath: "/tasks/report", refused: `{"unknown":1}`, refusedStatus: 400,
	}}
}

func railsDigest(body string) string {
	mac := hmac.New(sha1.New, []byte(railsSecret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

var nextRuns = regexp.MustCompile(`(?m)^         next .*\n`)

func TestFrameworkBundlesAreChecked(t *testing.T) {
	t.Parallel()
	bundles, err := filepath.Abs("testdata/bundles")
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir() // stand-ins, so that the output does not depend on the machine
	for _, name := range []string{"npm", "python", "gunicorn", "bundle", "php", "java", "mvn"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range append(frameworkBundles(), frameworkBundle{name: "shutdown"}) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			out, code := tendril(t, bundles, []string{"PATH=" + programs}, "check", b.name)
			out = strings.ReplaceAll(nextRuns.ReplaceAllString(out, ""), bundles+"/", "")
			golden := filepath.Join(bundles, b.name+".check")
			if *update {
				if err := os.WriteFile(golden, []byte(out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if code != 0 || err != nil || out != string(want) {
				t.Errorf("exit status %d, %v; got\n%swant\n%s", code, err, out, want)
			}
		})
	}
}

func TestFrameworkBundlesRun(t *testing.T) {
	t.Parallel()
	for _, b := range frameworkBundles() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			path := b.programs(t) + string(filepath.ListSeparator) + mustAbs(t, "testdata/bundles/standins") +
				string(filepath.ListSeparator) + os.Getenv("PATH")
			dir, data := filepath.Join(t.TempDir(), b.name), t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata/bundles", b.name))); err != nil {
				t.Fatal(err)
			}
			env := []string{"PATH=" + strings.TrimPrefix(path, string(filepath.ListSeparator)), "SECRET_KEY_BASE=" + railsSecret,
				"SECRET_KEY=" + djangoSecret, "PYTHONDONTWRITEBYTECODE=1", "npm_config_update_notifier=false"}
			p, started := startWith(t, env, "up", "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0",
				"--port", testpeer.FreePort(t), dir)
			b.deliver(t, p, started)
			b.refuse(t, p, started)
			b.schedule(t, p, data)
			if code := p.terminate(t); code != 0 {
				t.Errorf("exit status %d", code)
			}
		})
	}
}

func mustAbs(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func sendWith(t *testing.T, started event, body string, attributes map[string]string) (id string) {
	t.Helper()
	in := &sqs.SendMessageInput{QueueUrl: &started.QueueURL, MessageBody: &body,
		MessageAttributes: map[string]types.MessageAttributeValue{}}
	for name, value := range attributes {
		in.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	return send(t, client(started.Endpoint), in)
}

type seenRequest struct {
	Path, Body string
	Headers    map[string]string
}

func awaitSeen(t *testing.T, p *process, header, value string) (seen seenRequest) {
	t.Helper()
	p.await(t, "the app saw "+header+" "+value, func(e event) bool {
		text, found := strings.CutPrefix(e.Line, "seen ")
		seen = seenRequest{}
		return found && json.Unmarshal([]byte(text), &seen) == nil && seen.Headers[header] == value
	})
	return seen
}

func (r seenRequest) check(t *testing.T, want map[string]string) {
	t.Helper()
	for header, pattern := range want {
		if !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(r.Headers[header]) {
			t.Errorf("%s is %q, want %s", header, r.Headers[header], pattern)
		}
	}
}

const instantPattern = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`

func (b *frameworkBundle) deliver(t *testing.T, p *process, started event) {
	t.Helper()
	id := sendWith(t, started, b.body, b.attributes)
	seen := awaitSeen(t, p, "x-aws-sqsd-msgid", id)
	want := map[string]string{
		"user-agent": "aws-sqsd/.*", "content-type": "application/json", "x-aws-sqsd-receive-count": "1",
		"x-aws-sqsd-queue": regexp.QuoteMeta(filepath.Base(started.QueueURL)), "x-aws-sqsd-first-received-at": instantPattern,
		"x-aws-sqsd-taskname": "",
	}
	for name, value := range b.attributes {
		want["x-aws-sqsd-attr-"+name] = regexp.QuoteMeta(value)
	}
	seen.check(t, want)
	if seen.Path != b.path || seen.Body != b.body {
		t.Errorf("got %q at %s, want %q at %s", seen.Body, seen.Path, b.body, b.path)
	}
	p.await(t, "the message is deleted", func(e event) bool { return e.MessageID == id && e.Status == 200.0 })
}

// refuse sends a message that the app must reject. Otherwise, a response of 200 would prove nothing.
func (b *frameworkBundle) refuse(t *testing.T, p *process, started event) {
	t.Helper()
	if b.refusedStatus == 0 {
		return
	}
	attributes := map[string]string{}
	for name, value := range b.attributes {
		attributes[name] = value
	}
	id := sendWith(t, started, b.refused, attributes)
	p.await(t, "the message is refused", func(e event) bool {
		return e.MessageID == id && e.Status == float64(b.refusedStatus)
	})
}

func (b *frameworkBundle) schedule(t *testing.T, p *process, data string) {
	t.Helper()
	out, code := tendril(t, "", nil, "tasks", "run", b.task, "--data-dir", data)
	if code != 0 {
		t.Fatalf("tasks run: %d\n%s", code, out)
	}
	id := strings.TrimSpace(out)
	seen := awaitSeen(t, p, "x-aws-sqsd-msgid", id)
	seen.check(t, map[string]string{"x-aws-sqsd-taskname": b.task, "x-aws-sqsd-scheduled-at": instantPattern,
		"x-aws-sqsd-sender-id": ".+"})
	if seen.Path != b.taskPath {
		t.Errorf("the task was posted to %s, want %s", seen.Path, b.taskPath)
	}
	p.await(t, "the run is deleted", func(e event) bool {
		return e.MessageID == id && (e.Status == 200.0 || e.Status == 204.0)
	})
}
