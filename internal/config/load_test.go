package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/bundle"
)

func home(more ...string) []string { return append([]string{"HOME=/absent"}, more...) }

// loadIsolated does not read the settings file of the machine that runs the test.
func loadIsolated(t *testing.T, src Sources) (*Config, error) {
	t.Helper()
	if src.Dir == "" {
		src.Dir = t.TempDir()
	}
	if src.SystemFile == "" {
		src.SystemFile = filepath.Join(t.TempDir(), "absent.yaml")
	}
	return Load(src)
}

func mustLoad(t *testing.T, src Sources) *Config {
	t.Helper()
	cfg, err := loadIsolated(t, src)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	perQueue := PerQueue{
		Backend: BackendEmbedded, HTTPPath: "/", MimeType: "application/json", BatchSize: 1,
		InactivityTimeout: 180 * time.Second, VisibilityTimeout: 300 * time.Second, RetentionPeriod: 345600 * time.Second,
	}
	want := Settings{
		PerQueue: perQueue,
		Name:     "tendril", Queue: "tendril", Region: "us-east-1", WaitTime: 20 * time.Second,
		DeleteLinger:    100 * time.Millisecond,
		HTTPConnections: 50, SuccessCodes: "200", HeaderBudget: 8192,
		Keepalive:      true,
		ConnectTimeout: 5 * time.Second,
		MaxRetries:     10, BackoffMax: time.Hour, BackoffDoublings: 16,
		Port: 5000, AppReadyTimeout: 5 * time.Minute, AppGrace: 10 * time.Second, RestartLimit: 10,
		RestartWindow: 300 * time.Second,
		DataDir:       "/absent/.local/state/tendril/environments/tendril",
		Listen:        "127.0.0.1:9324", AccountID: "000000000000",
		Console: "127.0.0.1:9325", ConsoleAuth: consoleAuthToken,
		ConsoleBodies: consoleBodiesShown,
		RolloutPolicy: RolloutAllAtOnce, RolloutBatchSizeType: RolloutPercentage, RolloutBatchSize: 100, RolloutTimeout: 10 * time.Minute,
		Leader: leaderElect, PeriodicTrust: trustAll, Lease: 15 * time.Second,
		FunctionTimeout: 900 * time.Second, BreakerWindow: 30 * time.Second, BreakerDelay: 15 * time.Second,
		CloudWatch: Off, MetricsInterval: time.Minute,
		DeployTimeout: 5 * time.Minute, ProcessesMin: 1, ProcessesMax: 1, AppLogRate: 1000,
		ScaleTarget: ScaleNone, ScaleDrainWithin: time.Minute, ScaleTargetBusy: 75, ScaleInProtection: protectionAuto,
		ScaleMinSize: 1, ScaleMaxSize: 4, ScaleCooldown: 360 * time.Second,
		ScaleCPUSource: cpuFromInstances, ScaleStatistic: "Average", ScaleLowerBreachScaleIncrement: -1, ScaleUpperBreachScaleIncrement: 1,
		ScalePeriod: 5 * time.Minute, ScaleEvaluationPeriods: 1,
		LogFormat: "auto", LogSample: 100, ShutdownTimeout: 30 * time.Second,
		Strict: true, MachineSections: machineIgnore,
		Queues: []QueueSettings{{
			Name: "tendril", Region: "us-east-1", Concurrency: 50, PerQueue: perQueue,
		}},
	}
	cfg := mustLoad(t, Sources{Environ: home()})
	if diff := cmp.Diff(want, cfg.Settings); diff != "" {
		t.Error(diff)
	}
	if len(cfg.Warnings) > 0 {
		t.Errorf("the defaults warn: %v", cfg.Warnings)
	}
	for _, o := range Options() {
		if cfg.IsSet(o.Name) {
			t.Errorf("%s counts as set", o.Name)
		}
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	dir := write(t, "tendril.yaml", "name: file\nhttp_path: /file\n")
	app, err := bundle.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	app.Dir = "/srv/bundle"
	src := Sources{Environ: home()}
	step := func(wantName, wantPath string, nameFrom, pathFrom Origin) {
		t.Helper()
		cfg := mustLoad(t, src)
		if cfg.Name != wantName || cfg.HTTPPath != wantPath {
			t.Errorf("name %s, path %s; want %s and %s", cfg.Name, cfg.HTTPPath, wantName, wantPath)
		}
		if got := cfg.Origin("name"); got != nameFrom {
			t.Errorf("the name is from %+v, want %+v", got, nameFrom)
		}
		if got := cfg.Origin("HttpPath"); got != pathFrom {
			t.Errorf("the path is from %+v, want %+v", got, pathFrom)
		}
	}
	step("tendril", "/", Origin{Default, "there is no app folder to derive the name from"}, Origin{})

	src.Bundle = app
	step("bundle", "/", Origin{FromBundle, "/srv/bundle"}, Origin{})

	src.Dir = dir
	file := filepath.Join(dir, "tendril.yaml")
	step("file", "/file", Origin{fromFile, file + ":1"}, Origin{fromFile, file + ":2"})

	src.Environ = append(src.Environ, "WORKERLESS_NAME=workerless", "SQSD_WORKER_HTTP_PATH=/clone")
	step("workerless", "/clone", Origin{fromEnvironment, "WORKERLESS_NAME"},
		Origin{fromEnvironment, "SQSD_WORKER_HTTP_PATH"})

	src.Environ = append(src.Environ, "TENDRIL_NAME=own", "TENDRIL_SQSD_HttpPath=/beanstalk")
	step("own", "/beanstalk", Origin{fromEnvironment, "TENDRIL_NAME"}, Origin{fromEnvironment, "TENDRIL_SQSD_HttpPath"})

	src.Environ = append(src.Environ, "TENDRIL_HTTP_PATH=/own")
	step("own", "/own", Origin{fromEnvironment, "TENDRIL_NAME"}, Origin{fromEnvironment, "TENDRIL_HTTP_PATH"})

	src.Flags = map[string]string{"name": "flag", "http-path": "/flag"}
	step("flag", "/flag", Origin{fromFlag, "--name"}, Origin{fromFlag, "--http-path"})
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ []string
		check   func(*Config) bool
	}{
		"PORT": {[]string{"PORT=8123"}, func(c *Config) bool { return c.Port == 8123 }},
		"AWS_REGION": {[]string{"AWS_REGION=eu-west-1"}, func(c *Config) bool {
			return c.Region == "eu-west-1" && c.IsSet("region")
		}},
		"AWS_REGION before the other": {[]string{"AWS_DEFAULT_REGION=a-1", "AWS_REGION=b-1"}, func(c *Config) bool {
			return c.Region == "b-1"
		}},
		"AWS_DEFAULT_REGION": {[]string{"AWS_DEFAULT_REGION=a-1"}, func(c *Config) bool {
			return c.Region == "a-1"
		}},
		"the environment beats the URL": {[]string{"AWS_REGION=a-1", "TENDRIL_QUEUE_URL=arn:aws:sqs:b-1:123456789012:q"},
			func(c *Config) bool {
				return c.Region == "a-1"
			}},
		"WORKER_SHUTDOWN_DELAY": {[]string{"WORKER_SHUTDOWN_DELAY=25"}, func(c *Config) bool {
			return c.AppGrace == 25*time.Second
		}},
		"WORKERLESS_CONCURRENCY": {[]string{"WORKERLESS_CONCURRENCY=7"}, func(c *Config) bool {
			return c.HTTPConnections == 7
		}},
		"an empty one is not set": {[]string{"TENDRIL_PORT=", "PORT="}, func(c *Config) bool {
			return c.Port == 5000 && !c.IsSet("port")
		}},
		"the last of two": {[]string{"PORT=1", "PORT=2"}, func(c *Config) bool { return c.Port == 2 }},
		"an = in the value": {[]string{"TENDRIL_HTTP_PATH=/a?b=c"}, func(c *Config) bool {
			return c.HTTPPath == "/a?b=c"
		}},
		"no = at all": {[]string{"PORT"}, func(c *Config) bool { return c.Port == 5000 }},
		"ConnectionTimeout": {[]string{"TENDRIL_SQSD_ConnectionTimeout=7"}, func(c *Config) bool {
			return c.ConnectTimeout == 7*time.Second
		}},
		"unset over a file's value": {[]string{"TENDRIL_SQSD_ErrorVisibilityTimeout=3",
			"TENDRIL_ERROR_VISIBILITY_TIMEOUT=unset"}, func(c *Config) bool {
			return c.ErrorVisibilityTimeout == nil && c.IsSet("error-visibility-timeout")
		}},
		"zero is not unset": {[]string{"TENDRIL_ERROR_VISIBILITY_TIMEOUT=0"}, func(c *Config) bool {
			return c.ErrorVisibilityTimeout != nil && *c.ErrorVisibilityTimeout == 0
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if cfg := mustLoad(t, Sources{Environ: home(c.environ...)}); !c.check(cfg) {
				t.Errorf("%q gave %+v", c.environ, cfg.Settings)
			}
		})
	}
}

func TestVariablesThatWarn(t *testing.T) {
	t.Parallel()
	for environ, want := range map[string]string{
		"TENDRIL_HTP_PATH=/a": "TENDRIL_HTP_PATH: unknown option; this variable has no effect; did you mean " +
			"TENDRIL_HTTP_PATH?",
		"TENDRIL_SQSD_HttpPaht=/a": "TENDRIL_SQSD_HttpPaht: unknown option; this variable has no effect; did you " +
			"mean TENDRIL_SQSD_HttpPath?",
		"TENDRIL_SQSD_Nothing=/a": "TENDRIL_SQSD_Nothing: unknown option; this variable has no effect; ",
		"SQSD_QUEUE_URL=https://h/1/q": "SQSD_QUEUE_URL: this variable is only supported for compatibility with other daemons; " +
			"use TENDRIL_QUEUE_URL instead",
		"SQSD_WORKER_TIMEOUT=60000": "SQSD_WORKER_TIMEOUT: this variable of another daemon is not supported; " +
			"docs/options.md lists every option",
		"WORKERLESS_METRICS_INTERVAL=5": "WORKERLESS_METRICS_INTERVAL: metrics-interval 5s has no effect: no metrics are " +
			"sent to CloudWatch; ",
	} {
		cfg := mustLoad(t, Sources{Environ: home(environ)})
		if len(cfg.Warnings) != 1 {
			t.Errorf("%s: %d warnings: %v", environ, len(cfg.Warnings), cfg.Warnings)
			continue
		}
		if got := cfg.Warnings[0].String() + "; " + cfg.Warnings[0].Hint; got != want {
			t.Errorf("%s\n got %s\nwant %s", environ, got, want)
		}
	}
	quiet := mustLoad(t,
		Sources{Environ: home("TENDRIL_REQUIRE_PEERS=1", "TENDRIL_CI_CACHE=/x", "WORKERLESS_LICENCE=x", "TENDRILS=1")})
	if len(quiet.Warnings) > 0 {
		t.Errorf("variables that are nobody's options warn: %v", quiet.Warnings)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		src  Sources
		want string
	}{
		"a flag": {Sources{Flags: map[string]string{"connect-timeout": "90"}},
			"--connect-timeout: 90 is out of range; allowed: 1s to 1m\n  write --connect-timeout=1m"},
		"an alias of a flag": {Sources{Flags: map[string]string{"concurrency": "0"}},
			"--concurrency: http-connections 0 is out of range; allowed: 1 to 1000\n  write --concurrency=1"},
		"a variable": {Sources{Environ: []string{"TENDRIL_MAX_RETRIES=lots"}},
			"TENDRIL_MAX_RETRIES: lots is not a whole number; allowed: 1 to 1000\n  write TENDRIL_MAX_RETRIES=10"},
		"a variable of another program": {Sources{Environ: []string{"PORT=http"}},
			"PORT: port http is not a whole number; allowed: 1 to 65535\n" +
				"  write PORT=5000, or remove it to use the first free port from 5000"},
		"a Beanstalk variable": {Sources{Environ: []string{"TENDRIL_SQSD_RetentionPeriod=1"}},
			"TENDRIL_SQSD_RetentionPeriod: retention-period 1 is out of range; allowed: 1m to 14d\n" +
				"  write TENDRIL_SQSD_RetentionPeriod=1m"},
		"an empty flag": {Sources{Flags: map[string]string{"queue": ""}},
			"--queue: \"\" contains characters not allowed in a name; allowed: 1 to 80 letters, digits, \"_\" and \"-\", " +
				"optionally ending in .fifo\n  write --queue=jobs"},
		"a value that another layer overrides": {Sources{Environ: []string{"TENDRIL_PORT=0"},
			Flags: map[string]string{"port": "80"}},
			"TENDRIL_PORT: 0 is out of range; allowed: 1 to 65535\n" +
				"  write TENDRIL_PORT=5000, or remove it to use the first free port from 5000"},
		"an alias that says otherwise": {Sources{Flags: map[string]string{"http-connections": "5", "concurrency": "6"}},
			"--concurrency: --http-connections sets the same option to a different value\n  use only one of them"},
		"a password that is not part of a URL": {Sources{Flags: map[string]string{"target": "http://u:hunter2@a b"}},
			"--target: \"...@a b\" is not a URL; allowed: http://HOST:PORT, https://HOST:PORT or unix:///PATH\n" +
				"  write --target=http://127.0.0.1:8080"},
		"control characters": {Sources{Flags: map[string]string{"mime-type": "a\x1b[2Jb"}},
			"--mime-type: \"a\\x1b[2Jb\" cannot be sent in a header; allowed: 1 to 255 printable ASCII characters\n" +
				"  write --mime-type=application/json"},
		"a very long value": {Sources{Flags: map[string]string{"region": strings.Repeat("x", 5000)}},
			"--region: " + strings.Repeat("x", 80) +
				"... is not a region name; allowed: lower-case letters, digits and \"-\", such as eu-west-1\n" +
				"  write --region=us-east-1"},
		"several at once": {Sources{Environ: []string{"TENDRIL_PORT=x"},
			Flags: map[string]string{"log-format": "jsn", "max-retries": "0"}},
			"TENDRIL_PORT: x is not a whole number; allowed: 1 to 65535\n" +
				"  write TENDRIL_PORT=5000, or remove it to use the first free port from 5000\n" +
				"--max-retries: 0 is out of range; allowed: 1 to 1000\n  write --max-retries=1\n" +
				"--log-format: jsn is unknown; allowed: auto, text, json or sqsd\n  write --log-format=json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.src.Environ = append(c.src.Environ, home()...)
			cfg, err := loadIsolated(t, c.src)
			var bad *Error
			if !errors.As(err, &bad) || cfg != nil {
				t.Fatalf("got %v, %v; want an *Error alone", cfg, err)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
			for _, p := range bad.Problems {
				if p.Option == "" || p.Where == "" {
					t.Errorf("%+v does not say what and where", p)
				}
			}
		})
	}
}

func TestEveryOptionIsCheckedEverywhere(t *testing.T) {
	t.Parallel()
	const wrong = "\x01"
	for _, o := range Options() {
		if o.Name == "config" {
			continue
		}
		names := map[string]Sources{
			"--" + o.Name: {Flags: map[string]string{o.Name: wrong}},
			o.Variable:    {Environ: []string{o.Variable + "=" + wrong}},
		}
		if o.Beanstalk != "" {
			names["/app/x.config:7"] = Sources{Bundle: withSettings(bundle.Setting{Namespace: o.Namespace, Option: o.Beanstalk,
				Value: wrong, File: "/app/x.config", Line: 7})}
		}
		if o.Namespace == bundle.NamespaceWorker {
			names[variablePrefix+o.Beanstalk] = Sources{Environ: []string{variablePrefix + o.Beanstalk + "=" + wrong}}
		}
		for _, n := range o.OtherVariables {
			names[n] = Sources{Environ: []string{n + "=" + wrong}}
		}
		dir := write(t, "tendril.yaml", o.Key+": \"\\x01\"\n")
		names[filepath.Join(dir, "tendril.yaml")+":1"] = Sources{Dir: dir}
		for where, src := range names {
			src.Environ = append(src.Environ, home()...)
			_, err := loadIsolated(t, src)
			var bad *Error
			if !errors.As(err, &bad) || len(bad.Problems) != 1 || bad.Problems[0].Where != where ||
				bad.Problems[0].Option != o.Name || bad.Problems[0].Hint == "" {
				t.Errorf("%s at %s: %v", o.Name, where, err)
			}
		}
	}
}
