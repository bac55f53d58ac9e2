package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestQueuesAreResolved(t *testing.T) {
	t.Parallel()
	five := 5 * time.Second
	file, err := filepath.Abs("testdata/queues-as-maps.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cfg := mustLoad(t, Sources{Environ: home("AWS_REGION=us-west-2"),
		Flags: map[string]string{"config": file, "http-path": "/flag", "http-connections": "20"}})
	all := QueueSettings{
		Region: "us-west-2", Weight: 1, Concurrency: 20,
		PerQueue: PerQueue{
			Backend: BackendEmbedded, HTTPPath: "/flag", MimeType: "application/json", BatchSize: 1,
			InactivityTimeout: 180 * time.Second, VisibilityTimeout: 600 * time.Second, ErrorVisibilityTimeout: &five,
			RetentionPeriod: 345600 * time.Second,
		},
	}
	payments, reports, mails, shared := all, all, all, all
	payments.Name = "payments"
	payments.Weight = 3
	payments.Max = 10
	payments.Concurrency = 10
	payments.HTTPPath = "/pay"
	payments.MimeType = "text/plain"
	payments.InactivityTimeout = time.Minute
	payments.Deadline = 2 * time.Minute
	payments.RetentionPeriod = 24 * time.Hour
	payments.MaxWait = 30 * time.Second
	payments.ErrorVisibilityTimeout = nil
	reports.Name, reports.URL, reports.Backend, reports.Region, reports.Weight = "reports",
		"arn:aws:sqs:eu-west-1:123456789012:reports", BackendSQS, "eu-west-1", 2
	reports.Function, reports.BatchSize, reports.BatchWindow, reports.ViaSNS = "make-report", 10, 5*time.Second, true
	mails.Name, mails.Target, mails.HTTPPath, mails.VisibilityTimeout, mails.InactivityTimeout = "mails",
		"http://127.0.0.1:8080", "/mail", time.Minute, 30*time.Second
	shared.Name, shared.Backend, shared.Lambda = "shared", BackendSQS, "python3 shared.py"
	if diff := cmp.Diff([]QueueSettings{payments, reports, mails, shared}, cfg.Queues); diff != "" {
		t.Error(diff)
	}
	if cfg.Strict || !cfg.AnyEmbedded() || !cfg.AnyOnSQS() || !cfg.AnyToOwnApp() {
		t.Errorf("strict %v, embedded %v, on SQS %v, to the app %v", cfg.Strict, cfg.AnyEmbedded(), cfg.AnyOnSQS(),
			cfg.AnyToOwnApp())
	}
	for _, c := range []struct {
		queue     int
		key, want string
	}{
		{0, "name", file + ":5"}, {0, "http_path", file + ":8"}, {0, "max", file + ":7"},
		{0, "visibility_timeout", file + ":2"}, {0, "batch_size", "default"},
		{0, "error_visibility_timeout", file + ":14"}, {0, "backend", "default: it is a name"},
		{1, "max", "--http-connections"}, {1, "http_path", "--http-path"},
		{1, "backend", "default: it has a URL or an ARN"}, {2, "http_path", file + ":23"}, {3, "backend", file + ":28"},
	} {
		if got := cfg.QueueOrigin(c.queue, c.key).String(); got != c.want {
			t.Errorf("%s of queue %d is from %s, want %s", c.key, c.queue, got, c.want)
		}
	}
}

func TestOneQueueIsResolved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags map[string]string
		check func(q QueueSettings) bool
	}{
		"nothing": {nil, func(q QueueSettings) bool {
			return q.Name == "tendril" && q.Backend == BackendEmbedded && q.ToOwnApp()
		}},
		"a name": {map[string]string{"queue": "jobs"}, func(q QueueSettings) bool {
			return q.Name == "jobs" && q.Backend == BackendEmbedded
		}},
		"a URL": {map[string]string{"queue-url": someURL}, func(q QueueSettings) bool {
			return q.Name == "jobs" && q.URL == someURL && q.Backend == BackendSQS && q.Region == "eu-west-1"
		}},
		"a name on SQS": {map[string]string{"queue": "jobs", "backend": "sqs"}, func(q QueueSettings) bool {
			return q.Name == "jobs" && q.URL == "" && q.Backend == BackendSQS
		}},
		"a function": {map[string]string{"queue": "jobs", "function": "f"}, func(q QueueSettings) bool {
			return q.Function == "f" && q.Backend == BackendSQS && q.ToFunction() && !q.ToOwnApp()
		}},
		"a function on this machine": {map[string]string{"lambda": "./f"}, func(q QueueSettings) bool {
			return q.Lambda == "./f" && q.Backend == BackendEmbedded && q.ToFunction()
		}},
		"a target with a path": {map[string]string{"target": "http://app/x"}, func(q QueueSettings) bool {
			return q.Target == "http://app" && q.HTTPPath == "/x" && !q.ToOwnApp() && !q.ToFunction()
		}},
		"queues of one": {map[string]string{"queues": "jobs"}, func(q QueueSettings) bool {
			return q.Name == "jobs" && q.Weight == 0
		}},
		"times": {map[string]string{"visibility-timeout": "7", "error-visibility-timeout": "0", "max-wait": "9"},
			func(q QueueSettings) bool {
				return q.VisibilityTimeout == 7*time.Second && *q.ErrorVisibilityTimeout == 0 && q.MaxWait == 9*time.Second
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := mustLoad(t, Sources{Environ: home(), Flags: c.flags})
			if len(cfg.Queues) != 1 || !c.check(cfg.Queues[0]) || !cfg.Strict {
				t.Errorf("got %+v", cfg.Queues)
			}
			if q := cfg.Queues[0]; q.Name != cfg.Queue || q.URL != cfg.QueueURL || q.Backend != cfg.Backend {
				t.Errorf("the settings name %s %s %s, the list %s %s %s", cfg.Queue, cfg.QueueURL, cfg.Backend, q.Name, q.URL,
					q.Backend)
			}
		})
	}
}

func TestQueueLayers(t *testing.T) {
	t.Parallel()
	const maps = "queues:\n  - name: a\n    http_path: /a\n  - name: b\n"
	for name, c := range map[string]struct {
		file    string
		environ []string
		flags   map[string]string
		queues  string
		check   func(*Config) bool
		warning string
		want    string
	}{
		"Workerless's variables": {environ: []string{"WORKERLESS_QUEUES=a:3,b:1", "WORKERLESS_FUNCTION=f",
			"WORKERLESS_NAME=n", "WORKERLESS_SLEEP=2", "WORKERLESS_POLL_FOR=10", "WORKERLESS_METRICS_INTERVAL=5",
			"WORKERLESS_CONCURRENCY=300"},
			queues: "a:3,b:1", check: func(c *Config) bool {
				return c.Queues[1].Backend == BackendSQS && c.Queues[1].Function == "f" && c.Sleep == 2*time.Second &&
					c.WaitTime == 10*time.Second &&
					c.MetricsInterval == 5*time.Second && c.CloudWatch == On && c.HTTPConnections == 300 && !c.Strict
			}},
		"queues over a queue": {file: "queue: jobs\n", flags: map[string]string{"queues": "a,b"}, queues: "a,b",
			warning: "this queue is not used: --queues selects the queues",
			check:   func(c *Config) bool { return c.Queue == "a" && c.Origin("queue").Where == "--queues" && c.Strict }},
		"queues over a URL": {file: "queue_url: " + someURL + "\n", flags: map[string]string{"queues": "a,b"},
			queues: "a,b", warning: "this queue is not used",
			check: func(c *Config) bool { return c.QueueURL == "" && c.Backend == BackendEmbedded }},
		"a queue over queues": {file: "queues: a,b\n", flags: map[string]string{"queue": "jobs"}, queues: "jobs",
			warning: "these queues are not used: --queue selects one",
			check:   func(c *Config) bool { return len(c.Queues) == 1 && c.Origin("queues").Where == "--queue" }},
		"a queue over maps": {file: maps, flags: map[string]string{"queue": "jobs"}, queues: "jobs",
			warning: "these queues are not used",
			check:   func(c *Config) bool { return c.Queues[0].HTTPPath == "/" }},
		"names over maps": {file: maps, flags: map[string]string{"queues": "a,c"}, queues: "a,c",
			warning: "these queues and their settings are not used: --queues",
			check:   func(c *Config) bool { return c.Queues[0].HTTPPath == "/" && c.QueueOrigin(0, "http_path") == Origin{} }},
		"both in one layer": {flags: map[string]string{"queues": "a", "queue": "b"},
			want: "--queues: queues are set both here and by the queue of --queue"},
		"a queue's own path over a flag": {file: maps, flags: map[string]string{"http-path": "/flag"}, queues: "a,b",
			check: func(c *Config) bool { return c.Queues[0].HTTPPath == "/a" && c.Queues[1].HTTPPath == "/flag" }},
		"a function over a target": {file: "target: http://app/x\n",
			flags: map[string]string{"function": "f", "queues": "a,b"}, queues: "a,b",
			warning: "target http://app/x is not used: messages go to the function of --function",
			check: func(c *Config) bool {
				return c.Target == "" && c.HTTPPath == "/" && c.Queues[1].Target == "" && c.Queues[1].Function == "f"
			}},
		"a target over a function": {file: "function: f\n", flags: map[string]string{"target": "http://app/x"},
			queues: "tendril", warning: "function f is not used: messages go to the target of --target",
			check: func(c *Config) bool { return c.Function == "" && c.Backend == BackendEmbedded && c.HTTPPath == "/x" }},
		"a local function over one on AWS": {file: "function: f\nqueues: a,b\n", flags: map[string]string{"lambda": "./f"},
			queues: "a,b", warning: "function f is not used",
			check: func(c *Config) bool { return c.Queues[0].Lambda == "./f" && c.Queues[0].Backend == BackendEmbedded }},
		"a function and a local one": {flags: map[string]string{"lambda": "./f", "function": "f", "queue": "a"},
			want: "--lambda: messages cannot go both to the function of --function and to this lambda"},
		"a queue's own target": {file: "function: f\nqueues:\n  - name: a\n    target: http://app\n  - name: b\n",
			queues: "a,b",
			check: func(c *Config) bool {
				return c.Queues[0].Target == "http://app" && c.Queues[0].Function == "" && c.Queues[0].Backend == BackendEmbedded &&
					c.Queues[1].Function == "f" && c.Queues[1].Backend == BackendSQS && c.Backend == BackendEmbedded
			}},
		"names on SQS": {flags: map[string]string{"queues": "a,b", "backend": "sqs"}, queues: "a,b",
			check: func(c *Config) bool { return c.Backend == BackendSQS && !c.AnyEmbedded() }},
		"names at home for a function": {flags: map[string]string{"queues": "a,b", "backend": "embedded", "function": "f"},
			queues: "a,b",
			check:  func(c *Config) bool { return !c.AnyOnSQS() }},
		"the file's URLs tried at home": {file: "queues: " + someURL + ",b\n",
			flags: map[string]string{"backend": "embedded"}, queues: "jobs,b",
			warning: "the URL of jobs is not used: --backend selects",
			check: func(c *Config) bool {
				return !c.AnyOnSQS() && c.QueueURL == "" && c.Queues[0].Region == "us-east-1" && c.Region == "us-east-1"
			}},
		"the weaker says embedded": {file: "backend: embedded\n", flags: map[string]string{"queues": someURL},
			want: "the queue jobs is set to embedded but has the URL of --queues"},
		"a backend of its own": {file: "backend: sqs\nqueues:\n  - name: a\n    backend: embedded\n  - name: b\n",
			queues: "a,b",
			check: func(c *Config) bool {
				return c.Queues[0].Backend == BackendEmbedded && c.Queues[1].Backend == BackendSQS &&
					c.Backend == BackendEmbedded && strings.HasSuffix(c.Origin("backend").Where, ":4")
			}},
		"auto of its own": {file: "backend: sqs\nqueues:\n  - name: a\n    backend: auto\n", queues: "a",
			check: func(c *Config) bool {
				return c.Backend == BackendEmbedded
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := Load(Sources{Dir: write(t, "tendril.yaml", c.file), Environ: home(c.environ...), Flags: c.flags})
			switch {
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			case c.want != "" && len(err.(*Error).Problems) != 1:
				t.Errorf("one mistake, several problems: %v", err)
			case c.want != "":
			case err != nil:
				t.Error(err)
			case formatQueues(cfg.Queues) != c.queues || !c.check(cfg):
				t.Errorf("got %s: %+v", formatQueues(cfg.Queues), cfg.Settings)
			case c.warning == "" && len(cfg.Warnings) > 0,
				c.warning != "" && (len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0].Text, c.warning)):
				t.Errorf("warnings %v, want %q", cfg.Warnings, c.warning)
			}
		})
	}
}

func TestExplainQueues(t *testing.T) {
	t.Parallel()
	dir := write(t, "tendril.yaml",
		"queues:\n  - name: payments\n    weight: 3\n    http_path: /pay\n  - arn: "+someARN+"\n    weight: 1\n")
	file := filepath.Join(dir, "tendril.yaml")
	cfg := mustLoad(t, Sources{Dir: dir, Environ: home(), Flags: map[string]string{"concurrency": "7"}})
	e, err := cfg.Explain("queues")
	if err != nil || len(e.Queues) != 2 || e.Value != "payments:3,"+someARN+":1" || e.From.Where != file+":1" {
		t.Fatalf("%+v, %v", e, err)
	}
	for i, want := range [][]QueueSetting{
		{{"weight", "3", Origin{fromFile, file + ":3"}}, {"max", "7", Origin{fromFlag, "--concurrency"}},
			{"http_path", "/pay", Origin{fromFile, file + ":4"}}},
		{{"url", someARN, Origin{fromFile, file + ":5"}},
			{"backend", BackendSQS, Origin{Default, "it has a URL or an ARN"}}, {"http_path", "/", Origin{}}},
	} {
		for _, w := range want {
			if !slices.Contains(e.Queues[i].Settings, w) {
				t.Errorf("%s: no %+v in %+v", e.Queues[i].Name, w, e.Queues[i].Settings)
			}
		}
	}
	for _, want := range []string{"\n  queue payments:\n", "\n  queue mails.fifo:\n",
		"\n    http_path                /pay (" + file + ":4)\n", "\n    deadline                 0s (default)\n"} {
		if !strings.Contains(e.String(), want) {
			t.Errorf("%q is not in\n%s", want, e)
		}
	}
	one, err := cfg.Explain("http-path")
	if err != nil || one.Queues != nil {
		t.Errorf("another option tells of queues: %+v, %v", one, err)
	}
}

func TestQueueSettingsAreReversible(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, Sources{Environ: home()})
	for _, o := range Options() {
		if !o.PerQueue {
			continue
		}
		text := map[string]string{kindDuration: "61s", kindInteger: "7", kindSwitch: "true", kindChoice: BackendSQS}[o.Kind()]
		if text == "" {
			text = o.example()
		}
		s := cfg.Settings
		if err := o.set(&s, text); err != nil {
			t.Errorf("%s: %q %v", o.Name, text, err)
			continue
		}
		back := Settings{PerQueue: s.PerQueue}
		if got := o.get(&back); got != o.get(&s) {
			t.Errorf("%s is %q and comes back as %q", o.Name, o.get(&s), got)
		}
	}
}
