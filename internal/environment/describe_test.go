package environment

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
	"tendril/internal/config"
	"tendril/internal/testing/testpeer"
)

func planned(t *testing.T, flags map[string]string, change func(*Options)) api.Description {
	t.Helper()
	cfg, err := config.Load(config.Sources{Flags: flags, Environ: []string{"HOME=" + t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Config: cfg, Version: "test"}
	if change != nil {
		change(&o)
	}
	return o.describeOffline()
}

func text(t *testing.T, d *api.Description) string {
	t.Helper()
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestDescriptionOfAPlannedEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cron := filepath.Join(dir, "cron.yaml")
	if err := os.WriteFile(cron, []byte("version: 1\ncron:\n - {name: tidy, url: \"/tidy?token=hunter2hunter2\", "+
		"schedule: \"0 3 * * *\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := planned(t, map[string]string{"queues": "jobs.fifo,mail", "http-path": "/w?token=hunter2hunter2", "cron": cron,
		"data-dir": dir, "console-token": "hunter2hunter2hunter2", "scale-target": "processes", "processes-max": "4"},
		func(o *Options) { o.Command = []string{"./app", "--password=hunter2hunter2"} })
	if strings.Contains(text(t, &d), "hunter2") {
		t.Errorf("a secret is shown: %s", text(t, &d))
	}
	if len(d.Queues) != 2 || d.Running || d.PID != 0 || d.Leader != nil {
		t.Fatalf("described: %+v", d)
	}
	want := api.DescribedQueue{
		Name: "jobs.fifo", Backend: "embedded", ARN: "arn:aws:sqs:us-east-1:000000000000:jobs.fifo", FIFO: true,
		Target: "http://localhost:5000/w", Attributes: map[string]string{"FifoQueue": "true",
			"MessageRetentionPeriod": "1209600", "VisibilityTimeout": "300",
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:jobs-dead.fifo","maxReceiveCount":10}`},
		DeadLetterQueue: &api.DescribedQueue{
			Name: "jobs-dead.fifo", Backend: "embedded", ARN: "arn:aws:sqs:us-east-1:000000000000:jobs-dead.fifo", FIFO: true,
			Attributes: map[string]string{"FifoQueue": "true", "MessageRetentionPeriod": "1209600"}},
	}
	got := d.Queues[0]
	if got.Settings == nil {
		t.Error("the queue has no settings")
	}
	got.Settings = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("queue (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(&api.Scaling{Target: "processes", MinSize: 1, MaxSize: 4}, d.Scaling); diff != "" {
		t.Errorf("scaling (-want +got)\n%s", diff)
	}
	if d.Election != "lease in the embedded queue jobs.fifo" || len(d.Tasks.Tasks) != 1 {
		t.Errorf("election %q, tasks %+v", d.Election, d.Tasks)
	}
	for _, place := range []api.Place{{Use: "console", At: "127.0.0.1:9325"}, {Use: "app", At: "localhost:5000"},
		{Use: "data directory", At: dir}, {Use: "periodic tasks", At: cron}} {
		if !slices.Contains(slices.Concat(d.Ports, d.Files), place) {
			t.Errorf("%+v is missing among %+v", place, d.Places)
		}
	}
	if len(d.Options) != len(config.Options()) {
		t.Errorf("%d options of %d", len(d.Options), len(config.Options()))
	}
	o, _ := d.Option("processes-max")
	if diff := cmp.Diff(api.DescribedOption{Name: "processes-max",
		OptionValue: api.OptionValue{Value: "4", Layer: "flag", Where: "--processes-max"},
		SetBy: []api.OptionValue{{Value: "1", Layer: "default"},
			{Value: "4", Layer: "flag", Where: "--processes-max"}},
	}, o); diff != "" {
		t.Errorf("option (-want +got)\n%s", diff)
	}
}

func TestDescriptionNamesResourcesOnAWS(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags     map[string]string
		resources []string
		election  string
		bounds    string
	}{
		"nothing": {map[string]string{}, nil, "", ""},
		"function and metrics": {map[string]string{"function": "resize", "queues": "a,b", "name": "shop"},
			[]string{kindFunction + " resize", kindMetrics + " Workerless-shop"}, "", ""},
		"group": {map[string]string{"backend": "sqs", "name": "web", "scale-target": "asg:web", "registry-table": "jobs",
			"s3-payloads": "big", "versions": "s3://archives/web", "scale-max-size": "7", "target": "http://127.0.0.1:1/", "cloudwatch": "off"},
			[]string{kindGroup + " web", kindBucket + " big", kindArchives + " s3://archives/web"},
			"lease in the DynamoDB table jobs", "1 7"},
		"published": {map[string]string{"scale-target": "publish", "name": "n", "leader": "local",
			"target": "http://127.0.0.1:1/"}, []string{kindMetrics + " tendril/n"},
			"none: this instance is declared the only one", ""},
	} {
		var got []string
		d := planned(t, tt.flags, func(o *Options) {
			for _, r := range sharedResources(&o.Config.Settings) {
				got = append(got, r.Kind+" "+r.Name)
			}
		})
		if !slices.Equal(got, tt.resources) || d.Election != tt.election {
			t.Errorf("%s: %q, election %q", name, got, d.Election)
		}
		if s := d.Scaling; tt.bounds != "" && (s.MinSize != 1 || s.MaxSize != 7) {
			t.Errorf("%s: %+v, want bounds %s", name, s, tt.bounds)
		}
	}
}

func TestDescriptionOfARunningEnvironment(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tendril.yaml")
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("inactivity_timeout: 60s\nrate: 5/s\n")
	flags := map[string]string{"config": file, "queue": "jobs", "target": "http://127.0.0.1:1/", "data-dir": t.TempDir(),
		"listen": "127.0.0.1:0", "console": "127.0.0.1:0"}
	r := run(t, flags, func(e *Environment) {
		e.opts.Load = func(src config.Sources) (*config.Config, error) {
			return config.Load(config.Sources{Flags: flags, Bundle: src.Bundle, Environ: os.Environ()})
		}
	})
	d := r.Describe(t.Context())
	if !d.Running || d.PID != os.Getpid() || d.State != api.StateRunning || len(d.Changes) != 0 || len(d.Notes) != 0 {
		t.Errorf("described: process %d, %s, changes %+v, notes %q", d.PID, d.State, d.Changes, d.Notes)
	}
	q := d.Queues[0]
	if q.URL != r.queues.endpoint+"/000000000000/jobs" || q.Attributes["VisibilityTimeout"] != "300" ||
		q.DeadLetterQueue == nil || q.DeadLetterQueue.Attributes["MessageRetentionPeriod"] != "1209600" ||
		q.Target != "http://127.0.0.1:1/" {
		t.Errorf("queue: %+v", q)
	}
	if !slices.Contains(d.Ports, api.Place{Use: "console", At: r.instance.address}) {
		t.Errorf("ports: %+v", d.Ports)
	}

	write("\ninactivity_timeout: 90s\nrate: 9/s\n")
	d = r.Describe(t.Context())
	of := func(value, line string) api.OptionValue {
		return api.OptionValue{Value: value, Layer: "file", Where: file + ":" + line}
	}
	if o, _ := d.Option("inactivity-timeout"); o.OptionValue != of("60s", "1") {
		t.Errorf("in force before the reload: %+v", o)
	}
	want := []api.OptionChange{{Name: "inactivity-timeout", OptionValue: of("90s", "2")},
		{Name: "rate", OptionValue: of("9/s", "3"), Restart: true}}
	if diff := cmp.Diff(want, d.Changes); diff != "" {
		t.Errorf("changes (-want +got)\n%s", diff)
	}

	if err := r.Hangup(); err != nil {
		t.Fatal(err)
	}
	d = r.Describe(t.Context())
	for name, want := range map[string]api.OptionValue{"inactivity-timeout": of("90s", "2"), "rate": of("5/s", "2")} {
		if o, _ := d.Option(name); o.OptionValue != want {
			t.Errorf("in force after the reload: %+v, want %+v", o, want)
		}
	}
	if diff := cmp.Diff(want[1:], d.Changes); diff != "" {
		t.Errorf("changes after the reload (-want +got)\n%s", diff)
	}

	write("rate: much\n")
	if d = r.Describe(t.Context()); len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "would be rejected") {
		t.Errorf("a mistake in the file is noted as %q", d.Notes)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

func TestDescriptionOfQueuesServedAlone(t *testing.T) {
	t.Parallel()
	r := run(t, nil, func(e *Environment) { e.opts.QueuesOnly = true })
	if err := r.queues.broker.CreateQueue(t.Context(), "orders", nil, nil); err != nil {
		t.Fatal(err)
	}
	if d := r.Describe(t.Context()); len(d.Queues) != 1 || d.Queues[0].URL == "" || d.Queues[0].Target != "" {
		t.Errorf("queues: %+v", d.Queues)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

func TestDescriptionBeforeAndAfterTheStartOnSQS(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": testpeer.Moto(t, "sqs", "dynamodb", "cloudwatch"), "AWS_ACCESS_KEY_ID": "test",
		"AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-west-1", "AWS_CONFIG_FILE": "/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	flags := map[string]string{"backend": "sqs", "name": "shop", "target": "http://127.0.0.1:1/", "cloudwatch": "on"}
	cfg, err := config.Load(config.Sources{Flags: flags, Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	before := (&Options{Config: cfg}).Describe(t.Context())
	if len(before.Resources) != 1 || len(before.Notes) != 1 ||
		before.Notes[0] != "queue shop does not exist: 'tendril up' creates it, with shop-dead" {
		t.Errorf("before: %+v, notes %q", before.Resources, before.Notes)
	}
	r := run(t, flags, nil)
	running := r.Describe(t.Context())
	if err := r.end(); err != nil {
		t.Error(err)
	}
	after := (&Options{Config: cfg}).Describe(t.Context())
	for name, d := range map[string]api.Description{"running": running, "after": after} {
		var owned []string
		for _, res := range d.Resources {
			if res.Owned && res.ARN != "" && res.URL != "" {
				owned = append(owned, res.Kind+" "+res.Name)
			}
		}
		if slices.Sort(owned); !slices.Equal(owned, []string{"dead-letter queue shop-dead", "queue shop"}) {
			t.Errorf("%s: owned %q of %+v", name, owned, d.Resources)
		}
		q := d.Queues[0]
		if q.Attributes["VisibilityTimeout"] != "300" || q.DeadLetterQueue == nil ||
			q.DeadLetterQueue.Attributes["MessageRetentionPeriod"] != "1209600" || q.DeadLetterQueue.URL == "" {
			t.Errorf("%s: %+v, %+v", name, q, q.DeadLetterQueue)
		}
	}
}

func TestDescribeNamesTheLeaderOfAFleetWithoutPeriodicTasks(t *testing.T) {
	_, url := standInForSQS(t, "jobs", "jobs-dead")
	r := run(t, map[string]string{"queue-url": url, "target": failingApp(t), "scale-target": "auto"}, nil)
	d := r.Describe(t.Context())
	if d.Tasks != nil || d.Election == "" || d.Leader == nil || !d.Leader.Leading {
		t.Errorf("tasks %+v, election %q, leader %+v", d.Tasks, d.Election, d.Leader)
	}
}
