package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func fromAll(file, registry string, environ []string, flags map[string]string) (*Config, error) {
	return Load(Sources{File: &File{Path: "tendril.yaml", Data: []byte(file)}, Environ: append(environ, "HOME=/home/op"), Flags: flags,
		Registry: &File{Path: "registry, revision 7", Data: []byte(registry)}})
}

func TestRegistryIsBetweenFileAndVariable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, registry string
		environ              []string
		flags                map[string]string
		want, where          string
		overrides            string
	}{
		{"nothing is set", "", "", nil, nil, "/", "", ""},
		{"the file", "http_path: /file\n", "rate: 5/s\n", nil, nil, "/file", "tendril.yaml:1", ""},
		{"the registry", "http_path: /file\n", "http_path: /all\n", nil, nil, "/all", "registry, revision 7", ""},
		{"a variable", "http_path: /file\n", "http_path: /all\n", []string{"TENDRIL_HTTP_PATH=/own"}, nil, "/own", "TENDRIL_HTTP_PATH",
			"the variable TENDRIL_HTTP_PATH"},
		{"a flag", "", "http_path: /all\n", []string{"TENDRIL_HTTP_PATH=/own"}, map[string]string{"http-path": "/flag"}, "/flag",
			"--http-path", "the flag --http-path"},
	} {
		cfg, err := fromAll(c.file, c.registry, c.environ, c.flags)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		from := cfg.Origin("http-path")
		if cfg.HTTPPath != c.want || from.Where != c.where || from.Overrides(FromRegistry) != c.overrides {
			t.Errorf("%s: %s from %q, overridden by %q", c.name, cfg.HTTPPath, from.Where, from.Overrides(FromRegistry))
		}
	}
}

func TestRegistryRejectsWhatItCannotSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, registry, file, want string }{
		{"a place", "data_dir: /x\n", "", "registry, revision 7: data-dir cannot be set for all instances: it is a place"},
		{"a port", "port: 5001\n", "", "it is a place on the instance's machine"},
		{"an address", "console: 0.0.0.0:80\n", "", "it controls access to an instance"},
		{"access", "console_auth: none\n", "", "it controls access to an instance"},
		{"a secret", "console_token: 0123456789abcdef0\n", "", "the registry does not store secrets"},
		{"the file of a secret", "signing_secret_file: /x\n", "", "the registry does not store secrets"},
		{"the queue", "queue_url: https://sqs.test/1/b\n", "", "it determines the instance's queue"},
		{"queues with settings", "queues: [{name: a}]\n", "", "it determines the instance's queue"},
		{"the registry", "registry_table: other\n", "", "it determines the instance's queue, name or registry"},
		{"the name of a queue", "name of jobs: x\n", "", "\"name of jobs\" cannot be set for all instances: it belongs to each instance's own list of queues"},
		{"the weight of a queue", "weight of jobs: 2\n", "", "\"weight of jobs\" cannot be set for all instances: it belongs to each instance's own list of queues\n" +
			"  set the key weight of this queue, below queues in the settings file of each instance"},
		{"a secret of a queue", "signing_secret of jobs: x\n", "", "\"signing_secret of jobs\" cannot be set for all instances: the registry does not store"},
		{"an unknown option of a queue", "http_pth of jobs: /\n", "", "did you mean http_path?"},
		{"an option of all queues", "rate of jobs: 5/s\n", "", "rate is not a per-queue setting"},
		{"a wrong value for a queue", "inactivity_timeout of jobs: x\n", "", "registry, revision 7: inactivity_timeout x"},
		{"an unknown option", "http_pth: /\n", "", "did you mean"},
		{"a wrong value", "http_connections: 5000\n", "", "registry, revision 7: http_connections 5000 is out of range"},
		{"a contradiction to the file", "processes_max: 2\n", "processes_min: 3\n", "processes-max 2 is less than processes-min 3"},
	} {
		_, err := fromAll(c.file, c.registry, nil, nil)
		wrong := (*Error)(nil)
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestRestartOfTheAppAppliesItsOptions(t *testing.T) {
	t.Parallel()
	before, err := fromAll("", "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := fromAll("", "http_path: /b\nhealthcheck: HTTP:80/up\nrestart_limit: 3\nrate: 5/s\n", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	change := Changed(&before.Settings, after)
	if !slices.Equal(change.Live, []string{"http-path"}) || change.Settings.Healthcheck != "" {
		t.Errorf("without a restart: %q, %q", change.Live, change.Settings.Healthcheck)
	}
	names := change.RestartApp()
	if !slices.Equal(names, []string{"healthcheck", "restart-limit"}) || !slices.Equal(change.Later, []string{"rate"}) ||
		change.Settings.Healthcheck != "HTTP:80/up" || change.Settings.RestartLimit != 3 || change.Settings.Rate != before.Rate {
		t.Errorf("restarted for %q, later %q: %+v", names, change.Later, change.Settings)
	}
	unset := Changed(change.Settings, before)
	if unset.RestartApp(); unset.Settings.Healthcheck != "" || len(unset.Later) > 0 {
		t.Errorf("unset again: %q, later %q", unset.Settings.Healthcheck, unset.Later)
	}
	if again := Changed(change.Settings, after); again.RestartApp() != nil || again.Live != nil {
		t.Errorf("a second time: %q", again.Live)
	}
}

func TestFleetOptionsAreSetForAllInstances(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"rollout-policy", "rollout-batch-size-type", "rollout-batch-size", "rollout-timeout",
		"rollout-ignore-health", "registry-lost-after"} {
		if o, found := Lookup(name); !found || !o.Live || o.PerInstance() != "" {
			t.Errorf("%s: found %t, live %t, locked because %q", name, found, o.Live, o.PerInstance())
		}
	}
	if o, _ := Lookup("registry-table"); o.PerInstance() == "" {
		t.Error("the registry itself can be set for all instances")
	}
}

func TestRegistrySetsOptionsOfSingleQueues(t *testing.T) {
	t.Parallel()
	const both = "queues:\n- name: a\n  http_path: /file\n  max: 3\n- b\n"
	for _, c := range []struct{ name, file, registry, flag, want string }{
		{"the file's setting", both, "http_path of a: /all\n", "", "a /all 3 registry, b / 10 default"},
		{"a queue without settings of its own", both, "http_path of b: /all\nmax of b: 2\n", "", "a /file 3 file, b /all 2 registry"},
		{"the registry's setting for all queues", both, "http_path of b: /b\nhttp_path: /all\n", "", "a /file 3 file, b /b 10 registry"},
		{"queues of a flag", "", "http_path of b: /b\n", "a,b", "a / 10 default, b /b 10 registry"},
		{"the only queue", "queue: a\n", "http_path of a: /a\n", "", "a /a 10 registry"},
		{"another queue", "queue: b\n", "http_path of a: /a\n", "", "b / 10 default"},
	} {
		flags := map[string]string{}
		if c.flag != "" {
			flags["queues"] = c.flag
		}
		cfg, err := fromAll(c.file, "http_connections: 10\n"+c.registry, nil, flags)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for i := range cfg.Queues {
			q := &cfg.Queues[i]
			got = append(got, fmt.Sprint(q.Name, " ", q.HTTPPath, " ", q.Concurrency, " ", cfg.QueueOrigin(i, "http_path").Layer))
		}
		if all := strings.Join(got, ", "); all != c.want {
			t.Errorf("%s: %s, want %s", c.name, all, c.want)
		}
	}
}

func TestQueueHasOneDestination(t *testing.T) {
	t.Parallel()
	const file = "queues:\n- name: a\n  target: http://127.0.0.1:81\n"
	for registry, want := range map[string]struct {
		PerQueue
		targetFrom, warning string
	}{
		"":                             {PerQueue{Target: "http://127.0.0.1:81"}, "tendril.yaml:3", ""},
		"target of a: http://[::1]:82": {PerQueue{Target: "http://[::1]:82"}, "registry, revision 7", ""},
		"lambda of a: ./x": {PerQueue{Lambda: "./x"}, "registry, revision 7", "tendril.yaml:3: queue a: target " +
			"http://127.0.0.1:81 is not used: messages go to the lambda of registry, revision 7"},
	} {
		cfg, err := fromAll(file, registry, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		q := &cfg.Queues[0]
		if q.Target != want.Target || q.Function != want.Function || q.Lambda != want.Lambda ||
			cfg.QueueOrigin(0, "target").Where != want.targetFrom {
			t.Errorf("with %q: target %q of %s, function %q, lambda %q", registry, q.Target, cfg.QueueOrigin(0, "target"),
				q.Function, q.Lambda)
		}
		if got := fmt.Sprint(cfg.Warnings); !strings.Contains(got, want.warning) || want.warning == "" && got != "[]" {
			t.Errorf("with %q: the warnings are %s", registry, got)
		}
	}
	for _, registry := range []string{"lambda of a: ./x\nfunction of a: f\n", "function of a: f\nlambda of a: ./x\n"} {
		_, err := fromAll(file, registry, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "queue a: messages cannot go both to the") {
			t.Errorf("with %q: %v", registry, err)
		}
	}
}

func TestSettingsOfQueuesForAllInstancesAreEdited(t *testing.T) {
	t.Parallel()
	f := File{Path: "registry", Shared: true}
	for _, step := range []struct{ set, want string }{
		{"http-path of a.fifo=/a", "http_path of a.fifo: /a\n"},
		{"max of b=3", "http_path of a.fifo: /a\nmax of b: 3\n"},
		{"http-path of a.fifo=/c", "http_path of a.fifo: /c\nmax of b: 3\n"},
		{"http-path of a.fifo", "max of b: 3\n"},
	} {
		edited, err := EditFile(f, change(step.set))
		if err != nil {
			t.Fatalf("%s: %v", step.set, err)
		}
		if f = edited.File; string(f.Data) != step.want || !f.Shared {
			t.Errorf("%s: %q, want %q", step.set, f.Data, step.want)
		}
	}
}
