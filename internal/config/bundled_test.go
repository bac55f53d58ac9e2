package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/internal/bundle"
)

func setting(namespace, option, value string, line int) bundle.Setting {
	return bundle.Setting{Namespace: namespace, Option: option, Value: value, File: "/app/.ebextensions/worker.config",
		Line: line}
}

func withSettings(settings ...bundle.Setting) *bundle.Bundle {
	return &bundle.Bundle{Dir: "/", Settings: settings}
}

func TestBundleSettings(t *testing.T) {
	t.Parallel()
	at := func(line string) Origin { return Origin{FromBundle, "/app/.ebextensions/worker.config:" + line} }
	cfg := mustLoad(t, Sources{Environ: home("TENDRIL_SQSD_RetentionPeriod=7000"), Bundle: withSettings(
		setting(bundle.NamespaceWorker, "HttpPath", "jobs", 3),
		setting(bundle.NamespaceWorker, "HttpPath", "/later", 4),
		setting(bundle.NamespaceWorker, "Connection timeout", "7", 5),
		setting(bundle.NamespaceWorker, "ConnectTimeout", "8", 6),
		setting(bundle.NamespaceWorker, "RetentionPeriod", "60", 7),
		setting(bundle.NamespaceWorker, "ErrorVisibilityTimeout", "", 8),
		setting(bundle.NamespaceWorker, "MaxRetries", "77", 8),
		setting(bundle.NamespaceWorker, "MaxRetries", "", 9),
		setting(bundle.NamespaceEnvironment, "WORKER_SHUTDOWN_DELAY", "25", 9),
		setting(bundle.NamespaceEnvironment, "PORT", "8081", 10),
		setting(bundle.NamespaceEnvironment, "TENDRIL_MAX_RETRIES", "wrong", 11),
		setting(bundle.NamespaceEnvironment, "WORKERLESS_CONCURRENCY", "wrong", 12),
		setting(bundle.NamespaceGroup, "MinSize", "2", 13),
		setting(bundle.NamespaceTrigger, "Period", "2", 14),
		setting(bundle.NamespaceTrigger, "BreachDuration", "10", 15),
		setting("aws:ec2:vpc", "HttpPath", "/wrong", 16),
	)})
	for name, want := range map[string]Origin{
		"http-path": at("4"), "connect-timeout": at("6"),
		"retention-period": {fromEnvironment, "TENDRIL_SQSD_RetentionPeriod"}, "error-visibility-timeout": {},
		"app-grace": at("9"), "port": at("10"), "max-retries": at("9"), "http-connections": {}, "scale-min-size": at("13"),
		"scale-period": at("14"),
	} {
		if got := cfg.Origin(name); got != want {
			t.Errorf("%s is from %+v, want %+v", name, got, want)
		}
	}
	if cfg.HTTPPath != "/later" || cfg.MaxRetries != 10 || cfg.ConnectTimeout != 8*time.Second ||
		cfg.AppGrace != 25*time.Second || cfg.Port != 8081 || cfg.ScaleMinSize != 2 ||
		cfg.ScalePeriod != 2*time.Minute || cfg.ScaleBreachDuration != 10*time.Minute {
		t.Errorf("got %+v", cfg.Settings)
	}
	if len(cfg.Warnings) > 0 {
		t.Errorf("a bundle that is right warns: %v", cfg.Warnings)
	}
	e, err := cfg.Explain("HttpPath")
	if err != nil || len(e.Chain) != 3 || e.Chain[1].Value != "/jobs" ||
		!strings.Contains(e.String(), "bundle       /later (/app/.ebextensions/worker.config:4)") {
		t.Errorf("%v, %v", e, err)
	}
}

func TestBundleNames(t *testing.T) {
	t.Parallel()
	app, err := bundle.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	app.Dir = "/srv/folder"
	if cfg := mustLoad(t,
		Sources{Environ: home(), Bundle: app, Flags: map[string]string{"queue-url": someURL}}); cfg.Name != "folder" ||
		cfg.CloudWatch != Off {
		t.Errorf("the folder's name: %s, metrics %s", cfg.Name, cfg.CloudWatch)
	}
	app.Manifest = bundle.Manifest{Name: "orders", NameLine: 3}
	if cfg := mustLoad(t, Sources{Environ: home(), Bundle: app}); cfg.Name != "orders" ||
		cfg.Origin("name") != (Origin{FromBundle, "/srv/folder/env.yaml:3"}) {
		t.Errorf("the name in env.yaml: %s (%s)", cfg.Name, cfg.Origin("name"))
	}
	cfg := mustLoad(t, Sources{Environ: home("TENDRIL_ENVIRONMENT_NAME=orders-worker"), Bundle: app,
		Flags: map[string]string{"queue-url": someURL}})
	if cfg.Name != "orders-worker" || cfg.CloudWatch != On || cfg.Origin("name").Where != "TENDRIL_ENVIRONMENT_NAME" {
		t.Errorf("the environment's name: %s (%s), metrics %s", cfg.Name, cfg.Origin("name"), cfg.CloudWatch)
	}
}

func TestBundleHealthSettings(t *testing.T) {
	t.Parallel()
	const at = "/app/.ebextensions/worker.config:7: "
	const rule = `{"Version":1,"Rules":{"Environment":{"Application":{"ApplicationRequests4xx":{"Enabled":%t}},"ELB":{"ELBRequests4xx":{"Enabled":false}}}},` +
		`"CloudWatchMetrics":{"Environment":{"ApplicationLatencyP99.9":60},"Instance":{}}}`
	for name, c := range map[string]struct {
		option, value string
		ignored       bool
		refused       string
		warned        []string
	}{
		"enhanced": {option: "SystemType", value: "enhanced"},
		"basic": {option: "SystemType", value: "basic",
			warned: []string{"SystemType basic has no effect: health is always enhanced"}},
		"a threshold": {option: "HealthCheckSuccessThreshold", value: "Warning",
			warned: []string{"HealthCheckSuccessThreshold has no effect: a new version receives messages when it is ready"}},
		"authorization": {option: "EnhancedHealthAuthEnabled", value: "true",
			warned: []string{"EnhancedHealthAuthEnabled has no effect: no agent sends health to AWS"}},
		"taken back":   {option: "ConfigDocument"},
		"an empty one": {option: "ConfigDocument", value: "{}"},
		"4xx counts": {option: "ConfigDocument", value: fmt.Sprintf(rule, true),
			warned: []string{"the ELB rules of ConfigDocument have no effect: a worker has no load balancer",
				"the CloudWatchMetrics of ConfigDocument are not published"}},
		"4xx is ignored": {option: "ConfigDocument", value: fmt.Sprintf(rule, false), ignored: true,
			warned: []string{"the ELB rules of ConfigDocument have no effect: a worker has no load balancer",
				"the CloudWatchMetrics of ConfigDocument are not published"}},
		"no JSON": {option: "ConfigDocument", value: "{",
			refused: "invalid ConfigDocument: unexpected end of JSON input\n  use a map, or JSON: "},
		"no boolean": {option: "ConfigDocument", value: strings.Replace(rule, "%t", `"no"`, 1),
			refused: "invalid ConfigDocument: cannot unmarshal string into Go"},
		"a mistyped name": {option: "Systemtype", value: "enhanced",
			refused: "Systemtype is not an option of Elastic Beanstalk's aws:elasticbeanstalk:healthreporting:system\n" +
				"  its options are ConfigDocument, SystemType, "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := loadIsolated(t, Sources{Environ: home(),
				Bundle: withSettings(setting(bundle.NamespaceHealth, c.option, c.value, 7))})
			if c.refused != "" {
				if err == nil || !strings.HasPrefix(err.Error(), at+c.refused) {
					t.Errorf("got  %v\nwant %s", err, at+c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var warned []string
			for _, w := range cfg.Warnings {
				warned = append(warned, strings.TrimPrefix(w.String(), at))
			}
			if cfg.HealthIgnoreClientErrors != c.ignored || !slices.Equal(warned, c.warned) {
				t.Errorf("4xx ignored %t, warned %q; want %t, %q", cfg.HealthIgnoreClientErrors, warned, c.ignored, c.warned)
			}
		})
	}
}

func TestBundleSettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	const at = "/app/.ebextensions/worker.config:7: "
	for name, c := range map[string]struct {
		setting bundle.Setting
		want    string
	}{
		"out of range": {setting(bundle.NamespaceWorker, "HttpConnections", "0", 7),
			at + "HttpConnections 0 is out of range; allowed: 1 to 1000\n  write HttpConnections: 1"},
		"in minutes": {setting(bundle.NamespaceTrigger, "Period", "601", 7),
			at + "Period 601 is out of range; allowed: 1 to 600 minutes\n  write Period: 600"},
		"in seconds": {setting(bundle.NamespaceWorker, "VisibilityTimeout", "50000", 7),
			at + "VisibilityTimeout 50000 is out of range; allowed: 0 to 43200 seconds\n  write VisibilityTimeout: 43200"},
		"no duration": {setting(bundle.NamespaceWorker, "InactivityTimeout", "x", 7),
			at + "InactivityTimeout x is not a duration; allowed: 1 to 36000 seconds\n  write InactivityTimeout: 180"},
		"or unset": {setting(bundle.NamespaceWorker, "ErrorVisibilityTimeout", "99999", 7),
			at + "ErrorVisibilityTimeout 99999 is out of range; allowed: 0 to 43200 seconds, or unset\n" +
				"  write ErrorVisibilityTimeout: 43200"},
		"the delay": {setting(bundle.NamespaceEnvironment, "WORKER_SHUTDOWN_DELAY", "99999", 7),
			at + "WORKER_SHUTDOWN_DELAY 99999 is out of range; allowed: 0 to 43200 seconds\n" +
				"  write WORKER_SHUTDOWN_DELAY: 43200"},
		"no number": {setting(bundle.NamespaceGroup, "MaxSize", "many", 7),
			at + "MaxSize many is not a whole number; allowed: 1 to 10000\n  write MaxSize: 4"},
		"a property": {setting(bundle.NamespaceEnvironment, "PORT", "http", 7),
			at + "PORT http is not a whole number; allowed: 1 to 65535\n" +
				"  write PORT: 5000, or remove it to use the first free port from 5000"},
		"a mistyped name": {setting(bundle.NamespaceWorker, "HttpPaht", "/", 7),
			at + "HttpPaht is not an option of Elastic Beanstalk's aws:elasticbeanstalk:sqsd\n  did you mean HttpPath?"},
		"a name of another namespace": {setting(bundle.NamespaceGroup, "HttpPath", "/", 7),
			at + "HttpPath is not an option of Elastic Beanstalk's aws:autoscaling:asg\n  its options are MinSize, MaxSize, Cooldown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := loadIsolated(t, Sources{Environ: home(), Bundle: withSettings(c.setting)})
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	cfg := mustLoad(t, Sources{Environ: home(),
		Bundle: withSettings(setting(bundle.NamespaceGroup, "Availability Zones", "Any 2", 7))})
	if len(cfg.Warnings) != 1 ||
		cfg.Warnings[0].String() != at+"Availability Zones has no effect: no instances are created" {
		t.Errorf("warnings %v", cfg.Warnings)
	}
}

func TestBundleSettingsAreAppliedOrNamed(t *testing.T) {
	t.Parallel()
	const (
		remedy    = "nothing is scaled; --scale-target=processes scales the processes of the app on this machine"
		noTarget  = " has no effect: " + remedy
		advised   = " only affects the advised size (/api/v1/scale): " + remedy
		noMeasure = " has no effect: no supported measure is set, so the size follows the backlog and the " +
			"deliveries in flight"
	)
	all := []bundle.Setting{
		setting(bundle.NamespaceGroup, "MinSize", "2", 3),
		setting(bundle.NamespaceGroup, "MaxSize", "6", 4),
		setting(bundle.NamespaceTrigger, "MeasureName", "NetworkOut", 5),
		setting(bundle.NamespaceTrigger, "UpperThreshold", "6000000", 6),
		setting(bundle.NamespaceTrigger, "Period", "5", 7),
		setting(bundle.NamespaceWorker, "HttpPath", "/jobs", 8),
	}
	for name, c := range map[string]struct {
		flags map[string]string
		want  []string
	}{
		"as the bundle says": {nil, []string{"7: Period 5" + noMeasure}},
		"nothing is scaled": {map[string]string{"scale-target": "none"},
			[]string{"5: MeasureName NetworkOut" + noTarget, "7: Period 5" + noTarget,
				"6: UpperThreshold 6000000" + noTarget, "4: MaxSize 6" + advised, "3: MinSize 2" + advised}},
		"set otherwise": {map[string]string{"scale-min-size": "3", "scale-measure-name": "BusyShare",
			"scale-target": "none"},
			[]string{"4: MaxSize 6" + advised, "7: Period 5" + advised}},
		"processes": {map[string]string{"scale-target": "processes"}, []string{"7: Period 5" + noMeasure}},
		"processes of an option": {map[string]string{"processes-max": "3", "scale-measure-name": "BusyShare"},
			[]string{"3: MinSize 2 has no effect: processes-max 3 (--processes-max) takes precedence",
				"4: MaxSize 6 has no effect: processes-max 3 (--processes-max) takes precedence"}},
		"a measure": {map[string]string{"scale-target": "processes", "scale-measure-name": "BusyShare"}, nil},
		"other bounds": {map[string]string{"scale-target": "processes", "scale-measure-name": "BusyShare",
			"processes-max": "3"},
			[]string{"4: MaxSize 6 has no effect: processes-max 3 (--processes-max) takes precedence"}},
		"a group": {map[string]string{"scale-target": "asg:jobs", "scale-measure-name": "BusyShare",
			"queue-url": someURL}, nil},
		"an adviser": {map[string]string{"scale-target": "publish", "queue-url": someURL},
			[]string{"7: Period 5" + noMeasure}},
		"the path alone": {map[string]string{"http-path": "/", "scale-target": "publish", "scale-measure-name": "BusyShare",
			"queue-url": someURL}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := mustLoad(t, Sources{Environ: home(), Flags: c.flags, Bundle: withSettings(all...)})
			var got []string
			for _, f := range cfg.NotUsed {
				got = append(got, strings.TrimPrefix(f.String(), "app/.ebextensions/worker.config:"))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			for option, idle := range map[string]bool{"http-path": false,
				"scale-max-size": slices.ContainsFunc(c.want, func(s string) bool {
					return strings.HasPrefix(s, "4: MaxSize 6 has no effect")
				})} {
				if cfg.Idle(option) != idle {
					t.Errorf("%s is idle: %t", option, !idle)
				}
			}
		})
	}
}

func TestComputedQueueURLIsRefused(t *testing.T) {
	t.Parallel()
	computed := setting(bundle.NamespaceWorker, "WorkerQueueURL", "", 7)
	computed.Computed = true
	literal := setting(bundle.NamespaceWorker, "WorkerQueueURL", someURL, 9)
	for name, c := range map[string]struct {
		settings []bundle.Setting
		flags    map[string]string
		refused  bool
		url      string
	}{
		"alone":                {settings: []bundle.Setting{computed}, refused: true},
		"after the URL itself": {settings: []bundle.Setting{literal, computed}, refused: true},
		"with a function": {settings: []bundle.Setting{computed}, flags: map[string]string{"lambda": "./f"},
			refused: true},
		"with a target": {settings: []bundle.Setting{computed}, flags: map[string]string{"target": "http://app"},
			refused: true},
		"before the URL itself": {settings: []bundle.Setting{computed, literal}, url: someURL},
		"with a queue URL": {settings: []bundle.Setting{computed}, flags: map[string]string{"queue-url": someURL},
			url: someURL},
		"with a queue's name":     {settings: []bundle.Setting{computed}, flags: map[string]string{"queue": "jobs"}},
		"with several queues":     {settings: []bundle.Setting{computed}, flags: map[string]string{"queues": "jobs,mail"}},
		"with the embedded queue": {settings: []bundle.Setting{computed}, flags: map[string]string{"backend": "embedded"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := loadIsolated(t, Sources{Environ: home(), Flags: c.flags, Bundle: withSettings(c.settings...)})
			const want = "/app/.ebextensions/worker.config:7: CloudFormation computes WorkerQueueURL: the " +
				"worker's queue is unknown here\n" +
				"  set its URL with --queue-url=https://sqs.REGION.amazonaws.com/ACCOUNT/NAME, or --backend=sqs and --name " +
				"for a queue created by tendril, or --backend=embedded to try the app with a local queue"
			switch {
			case c.refused && (err == nil || err.Error() != want):
				t.Errorf("got  %v\nwant %s", err, want)
			case !c.refused && err != nil:
				t.Error(err)
			case !c.refused && cfg.QueueURL != c.url:
				t.Errorf("the queue's URL is %q, want %q", cfg.QueueURL, c.url)
			}
		})
	}
}

func TestBundleSettingWithoutValue(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, Sources{Environ: home(), Bundle: withSettings(
		setting(bundle.NamespaceWorker, "WorkerQueueURL", someURL, 3),
		setting(bundle.NamespaceWorker, "WorkerQueueURL", "", 7))})
	const want = "/app/.ebextensions/worker.config:7: WorkerQueueURL has no value here and keeps the value from " +
		"/app/.ebextensions/worker.config:3"
	if cfg.QueueURL != someURL || len(cfg.Warnings) != 1 || cfg.Warnings[0].String() != want {
		t.Errorf("queue %s, warnings %v, want %s", cfg.QueueURL, cfg.Warnings, want)
	}
}
