package environment

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"tendril/internal/aws"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/observe/doctor"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

func finding(e *doctor.Examination, id string) doctor.Finding {
	for _, f := range e.Findings {
		if f.ID == id {
			return f
		}
	}
	return doctor.Finding{}
}

// want contains each finding's level and a part of its text, by ID.
func expect(t *testing.T, e *doctor.Examination, want map[string][2]string) {
	t.Helper()
	for id, w := range want {
		f := finding(e, id)
		text := f.What + "\n" + f.Why + "\n" + f.Remedy
		if string(f.Level) != w[0] || !strings.Contains(text, w[1]) {
			t.Errorf("%s is %q, want %q, with %q in\n%s", id, f.Level, w[0], w[1], text)
		}
	}
}

func TestExamineAPlannedEnvironment(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", "nginx/1.22.1")
	}))
	defer proxy.Close()
	app := t.TempDir()
	if err := os.MkdirAll(app+"/.platform/nginx/conf.d", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"Procfile": "web: no-such-program --port $PORT\n",
		".platform/nginx/conf.d/slow.conf": "proxy_read_timeout 20s;\n"} {
		if err := os.WriteFile(app+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := bundle.Open(app)
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	environ := []string{"HOME=" + data, "PATH=/usr/bin:/bin"}
	cfg, err := config.Load(config.Sources{Environ: environ, Bundle: b, Flags: map[string]string{"data-dir": data,
		"listen": taken.Addr().String(), "console": "127.0.0.1:0", "deadline": "900", "name": "shop"}})
	if err != nil {
		t.Fatal(err)
	}
	e := (&Options{Config: cfg, Bundle: b, AppEnv: environ}).Examine(t.Context())
	if e.Environment != "shop" || e.Running {
		t.Errorf("examined %+v", e)
	}
	expect(t, &e, map[string][2]string{
		"visibility-short": {"warning", "tendril up --visibility-timeout=900s"},
		"app":              {"error", "no-such-program"},
		"port-queues":      {"error", taken.Addr().String() + " is in use by "},
		"port-console":     {"", ""}, // any free port
		"port-app":         {"ok", ""},
		"disk":             {"ok", data},
		"open-files":       {"ok", ""},
		"time-zones":       {"ok", ""},
		"permissions":      {"", ""},
		"clock":            {"", ""},
	})

	// The app runs elsewhere, first behind a proxy and then down.
	cfg, err = config.Load(config.Sources{Environ: environ, Flags: map[string]string{"data-dir": data, "console": "off",
		"listen": "127.0.0.1:0", "target": proxy.URL, "inactivity-timeout": "120"}})
	if err != nil {
		t.Fatal(err)
	}
	e = (&Options{Config: cfg, Bundle: &bundle.Bundle{Dir: app}, AppEnv: environ}).Examine(t.Context())
	expect(t, &e, map[string][2]string{
		"app":           {"ok", proxy.URL + " responds"},
		"proxy-timeout": {"warning", "slow.conf:1"},
	})
	proxy.Close()
	e = (&Options{Config: cfg, AppEnv: environ}).Examine(t.Context())
	expect(t, &e, map[string][2]string{"app": {"error", "connection refused"}, "proxy-timeout": {"", ""}})
}

func TestExamineTheRunningEnvironment(t *testing.T) {
	t.Parallel()
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer app.Close()
	r := run(t, map[string]string{"target": app.URL, "visibility-timeout": "60"}, nil)
	e := examineRunning(t.Context(), r.Environment)
	if !e.Running || e.Environment == "" {
		t.Errorf("examined %+v", e)
	}
	expect(t, &e, map[string][2]string{
		"visibility-short": {"warning", "tendril config set visibility-timeout=185s"},
		"app":              {"ok", "responds"},
		"port-console":     {"ok", r.instance.address},
		"port-queues":      {"ok", strings.TrimPrefix(r.queues.endpoint, "http://")},
		"disk":             {"ok", r.settings.now().DataDir},
	})
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

func TestExamineRunningReportsPartsThatStoppedWorking(t *testing.T) {
	t.Parallel()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	defer app.Close()
	r := run(t, map[string]string{"target": app.URL, "queue": "jobs", "error-visibility-timeout": "0", "max-retries": "1"}, nil)
	for range 12 {
		if _, err := r.queues.broker.Queue("jobs").Send(t.Context(), []queue.Outgoing{{Body: "x"}}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "unanswered deliveries in the health", func() bool {
		return strings.Contains(strings.Join(r.observe.monitor.Report().Causes, " "), "(12 of 12) are without a response")
	})
	if err := r.queues.broker.DeleteQueue(t.Context(), "jobs-dead"); err != nil {
		t.Fatal(err)
	}
	r.instance.address = "127.0.0.1:" + testpeer.FreePort(t)

	e := examineRunning(t.Context(), r.Environment)
	expect(t, &e, map[string][2]string{
		"health":            {"error", "are without a response"},
		"dead-letter-queue": {"error", "tendril queues create jobs-dead --no-dead-letter-queue"},
		"port-console":      {"error", "no response at " + r.instance.address},
		"port-queues":       {"ok", ""},
	})
}

func TestExamineServedQueuesReportsProblemsWithStoredMessages(t *testing.T) {
	t.Parallel()
	r := run(t, nil, func(e *Environment) { e.opts.QueuesOnly = true })
	arn := r.queues.broker.ARN("jobs-dead")
	policy := map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + arn + `","maxReceiveCount":"3"}`}
	err := errors.Join(r.queues.broker.CreateQueue(t.Context(), "jobs-dead", nil, nil),
		r.queues.broker.CreateQueue(t.Context(), "jobs", policy, nil))
	if err != nil {
		t.Fatal(err)
	}
	e := examineRunning(t.Context(), r.Environment)
	for _, f := range e.Findings {
		if f.ID == "messages" || f.ID == "health" {
			t.Errorf("before the deletion: %+v", f)
		}
	}

	if err := r.queues.broker.DeleteQueue(t.Context(), "jobs-dead"); err != nil {
		t.Fatal(err)
	}
	e = examineRunning(t.Context(), r.Environment)
	expect(t, &e, map[string][2]string{"messages": {"error", "tendril queues create jobs-dead --no-dead-letter-queue"}})
}

func fakeIAM(t *testing.T, denied string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		action := r.PostForm.Get("Action")
		fmt.Fprintf(w, "<%sResponse><%sResult>", action, action)
		if action == "GetCallerIdentity" {
			fmt.Fprint(w, "<Account>123456789012</Account><Arn>arn:aws:iam::123456789012:user/dev</Arn>")
		} else {
			fmt.Fprint(w, "<EvaluationResults>")
			for name, values := range r.PostForm {
				decision := "allowed"
				if values[0] == denied {
					decision = "implicitDeny"
				}
				if strings.HasPrefix(name, "ActionNames.") {
					fmt.Fprintf(w, "<member><EvalActionName>%s</EvalActionName><EvalDecision>%s</EvalDecision></member>", values[0],
						decision)
				}
			}
			fmt.Fprint(w, "</EvaluationResults>")
		}
		fmt.Fprintf(w, "</%sResult></%sResponse>", action, action)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestExamineOnSQS(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_SQS": testpeer.Moto(t, "sqs", "s3"), "AWS_ACCESS_KEY_ID": "test",
		"AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-west-1", "AWS_CONFIG_FILE": "/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	examine := func(flags map[string]string) *doctor.Examination {
		t.Helper()
		given := map[string]string{"backend": "sqs", "target": "http://127.0.0.1:1/", "cloudwatch": "off",
			"data-dir": t.TempDir()}
		for name, value := range flags {
			given[name] = value
		}
		cfg, err := config.Load(config.Sources{Flags: given, Environ: os.Environ()})
		if err != nil {
			t.Fatal(err)
		}
		e := (&Options{Config: cfg, AppEnv: os.Environ()}).Examine(t.Context())
		return &e
	}
	sqs, err := aws.OpenSQS(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sqs.Close)
	create := func(name string, attributes map[string]string) {
		t.Helper()
		if _, err := sqs.Create(t.Context(), name, attributes, nil); err != nil {
			t.Fatal(err)
		}
	}
	// No resources exist, and a server that is not AWS has no IAM.
	expect(t, examine(map[string]string{"name": "shop"}), map[string][2]string{
		"queue": {"ok", "'tendril up' creates it"}, "clock": {"ok", "the queue server, http://127.0.0.1"},
		"permissions": {"", ""},
	})
	expect(t, examine(map[string]string{"queue": "jobs"}), map[string][2]string{
		"queue-missing": {"error", "tendril queues create jobs --backend sqs"}})

	t.Setenv("AWS_ENDPOINT_URL_S3", os.Getenv("AWS_ENDPOINT_URL_SQS"))
	expect(t, examine(map[string]string{"name": "shop", "versions": "s3://missing/shop"}), map[string][2]string{
		"versions": {"error", "checking bucket missing: bucket missing does not exist at http://127.0.0.1"}})

	create("plain", map[string]string{"VisibilityTimeout": "30", "MessageRetentionPeriod": "345600"})
	iam := fakeIAM(t, "sqs:DeleteMessage")
	t.Setenv("AWS_ENDPOINT_URL_IAM", iam)
	t.Setenv("AWS_ENDPOINT_URL_STS", iam)
	expect(t, examine(map[string]string{"queue": "plain"}), map[string][2]string{
		"no-dead-letter-queue": {"warning", "tendril queues create plain-dead --backend sqs"},
		"permissions":          {"error", "does not allow sqs:DeleteMessage on arn:aws:sqs:eu-west-1:123456789012:plain"},
	})

	create("jobs-dead", map[string]string{"MessageRetentionPeriod": "60"})
	create("jobs", map[string]string{"MessageRetentionPeriod": "345600",
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:jobs-dead","maxReceiveCount":"5"}`})
	iam = fakeIAM(t, "sqs:GetQueueAttributes")
	t.Setenv("AWS_ENDPOINT_URL_IAM", iam)
	e := examine(map[string]string{"queue": "jobs"})
	expect(t, e, map[string][2]string{
		"dead-letter-retention": {"warning", "MessageRetentionPeriod=1209600"},
		"permissions":           {"error", "sqs:GetQueueAttributes on arn:aws:sqs:eu-west-1:123456789012:jobs"},
	})
	last := ""
	for _, f := range e.Findings {
		if f.ID == "permissions" {
			last = f.What
		}
	}
	if !strings.HasSuffix(last, ":jobs-dead") {
		t.Errorf("the dead-letter queue is not asked for by its name: %s", last)
	}

	// moto cannot simulate policies.
	t.Setenv("AWS_ENDPOINT_URL_IAM", testpeer.Moto(t, "iam", "sts"))
	expect(t, examine(map[string]string{"queue": "jobs"}), map[string][2]string{
		"permissions": {"warning", "could not be checked"}})
	t.Setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:1")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	expect(t, examine(map[string]string{"queue": "jobs"}), map[string][2]string{
		"aws": {"error", "did not respond"}, "permissions": {"", ""}})
}
