package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tendril/internal/bundle"
)

type fakeSystem struct {
	has     []string
	answers map[string]string // keyed by command line; other queries fail
	fails   string
	did     []string
}

func (f *fakeSystem) Run(_ context.Context, c *Call) (string, error) {
	line := strings.Join(c.Argv, " ") + c.Shell
	if c.Quiet {
		answer, ok := f.answers[line]
		if !ok {
			return "", errors.New("exit status 1")
		}
		return answer, nil
	}
	if c.HasEnv {
		line += fmt.Sprintf(" env %q", c.Env)
	}
	if c.Dir != "" && c.Dir != "/" {
		line += " in " + c.Dir
	}
	f.did = append(f.did, line)
	if line == f.fails {
		return "", errors.New("exit status 1")
	}
	return "", nil
}

func (f *fakeSystem) Has(program string) bool { return slices.Contains(f.has, program) }

func apply(t *testing.T, system System, configs ...bundle.MachineConfig) (outcomes []string, err error) {
	t.Helper()
	steps := Plan(&bundle.Machine{Configs: configs})
	a := NewApplier(system, steps)
	for i := range steps {
		outcome, err := a.Apply(t.Context(), &steps[i])
		if err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, steps[i].Title()+": "+string(outcome))
	}
	return outcomes, nil
}

func TestSectionsAreAppliedInTheOrderOfCfnInit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	yes := true
	one := bundle.MachineConfig{
		Services: []bundle.Service{{Name: "web", IsSystemd: true, Running: &yes, Enabled: &yes}},
		Commands: []bundle.Command{{Name: "01", Shell: "a"}},
		Files:    []bundle.MachineFile{{Path: filepath.Join(dir, "file"), Content: "x"}},
		Users:    []bundle.User{{Name: "u", UID: "50", Groups: []string{"g", "h"}, Home: "/srv"}},
		Groups:   []bundle.Group{{Name: "g"}, {Name: "h", GID: "45"}},
		Packages: []bundle.Package{{Manager: "yum", Name: "gcc"}},
	}
	two := bundle.MachineConfig{Packages: []bundle.Package{{Manager: "python", Name: "x", Versions: []string{"1"}}}}
	system := &fakeSystem{has: []string{"yum", "systemctl", "/sbin/nologin"}}
	outcomes, err := apply(t, system, one, two)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"packages yum gcc: changed", "groups g: changed", "groups h: changed", "users u: changed",
		"files " + filepath.Join(dir, "file") + ": changed", "commands 01: changed", "services web: changed",
		"packages python x: changed"}
	if !slices.Equal(outcomes, want) {
		t.Errorf("outcomes %q, want %q", outcomes, want)
	}
	if did, want := system.did, []string{"yum -y install gcc", "groupadd -r g", "groupadd -r -g 45 h",
		"useradd -M -r --shell /sbin/nologin -d /srv -u 50 -G g,h u", "a", "systemctl enable web", "systemctl start web",
		"python3 -m pip install x==1"}; !slices.Equal(did, want) {
		t.Errorf("it did %q, want %q", did, want)
	}
}

func TestStepsChangeOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	pkg := func(manager, name string, versions ...string) bundle.MachineConfig {
		return bundle.MachineConfig{Packages: []bundle.Package{{Manager: manager, Name: name, Versions: versions}}}
	}
	svc := func(s bundle.Service) bundle.MachineConfig {
		return bundle.MachineConfig{Services: []bundle.Service{s}}
	}
	for name, c := range map[string]struct {
		config  bundle.MachineConfig
		has     []string
		answers map[string]string
		did     []string
		err     string
	}{
		"yum, installed": {config: pkg("yum", "a"), answers: map[string]string{"rpm -q --whatprovides a": ""}},
		"yum, a version": {config: pkg("yum", "a", "1"), has: []string{"dnf"}, did: []string{"dnf -y install a-1"},
			answers: map[string]string{"rpm -q a": ""}},
		"yum, without yum": {config: pkg("yum", "a"), err: "yum or dnf not found on this machine"},
		"rpm, installed": {config: pkg("rpm", "e", "https://x/e.rpm"), answers: map[string]string{
			"rpm -qp --nosignature --qf %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH} https://x/e.rpm": "e-1-1.noarch",
			"rpm -q e-1-1.noarch": ""}},
		"rpm": {config: pkg("rpm", "e", "https://x/e.rpm"), did: []string{
			"rpm -U --nosignature --replacepkgs https://x/e.rpm"}},
		"apt, installed": {config: pkg("apt", "a"), answers: map[string]string{
			"dpkg-query -W -f ${db:Status-Status} ${Version} a": "installed 1.2"}},
		"apt, another version": {config: pkg("apt", "a", "1.3"), did: []string{"apt-get -q -y update",
			"apt-get -q -y install a=1.3"}, answers: map[string]string{
			"dpkg-query -W -f ${db:Status-Status} ${Version} a": "installed 1.2"}},
		"apt, its lists once": {config: bundle.MachineConfig{Packages: []bundle.Package{{Manager: "apt", Name: "a"},
			{Manager: "apt", Name: "b"}}}, did: []string{"apt-get -q -y update", "apt-get -q -y install a",
			"apt-get -q -y install b"}},
		"gems": {config: pkg("rubygems", "chef", "1", "2"), did: []string{"gem install --no-document chef -v 2"},
			answers: map[string]string{"gem list -i -e chef -v 1": "true"}},
		"python, installed": {config: pkg("python", "x", "1"), answers: map[string]string{
			"python3 -m pip show x": "Name: x\nVersion: 1\n"}},
		"python, another version": {config: pkg("python", "x", "1"), did: []string{"python3 -m pip install x==1"},
			answers: map[string]string{"python3 -m pip show x": "Name: x\nVersion: 1.1\n"}},
		"a group that is there": {config: bundle.MachineConfig{Groups: []bundle.Group{{Name: "g", GID: "45"}}},
			answers: map[string]string{"getent group g": "g:x:45:"}},
		"a group with another number": {config: bundle.MachineConfig{Groups: []bundle.Group{{Name: "g", GID: "45"}}},
			answers: map[string]string{"getent group g": "g:x:46:"}, err: "group g exists with GID 46, not 45"},
		"a user in a further group": {config: bundle.MachineConfig{Users: []bundle.User{{Name: "u",
			Groups: []string{"g", "h"}}}}, did: []string{"usermod -a -G h u"},
			answers: map[string]string{"getent passwd u": "u:x:50:50::/:/bin/sh", "id -Gn u": "u g"}},
		"a user with another number": {config: bundle.MachineConfig{Users: []bundle.User{{Name: "u", UID: "51"}}},
			answers: map[string]string{"getent passwd u": "u:x:50:50::/:/bin/sh"},
			err:     "user u exists with UID 50, not 51"},
		"a service as it is to be": {config: svc(bundle.Service{Name: "s", IsSystemd: true, Enabled: &yes, Running: &yes}),
			has: []string{"systemctl"}, answers: map[string]string{"systemctl is-enabled --quiet s": "",
				"systemctl is-active --quiet s": ""}},
		"a service that is to stop": {config: svc(bundle.Service{Name: "s", Enabled: &no, Running: &no}),
			has: []string{"systemctl", "/run/systemd/system"}, did: []string{"systemctl disable s", "systemctl stop s"},
			answers: map[string]string{"systemctl is-enabled --quiet s": "", "systemctl is-active --quiet s": ""}},
		"a script of sysvinit": {config: svc(bundle.Service{Name: "s", Enabled: &yes, Running: &yes}),
			has: []string{"/etc/init.d/s", "update-rc.d"}, did: []string{
				`sh -c update-rc.d "$0" defaults && update-rc.d "$0" enable s`, "/etc/init.d/s start"}},
		"a script of sysvinit that is enabled": {config: svc(bundle.Service{Name: "s", Enabled: &no}),
			has: []string{"/etc/init.d/s", "update-rc.d"}, did: []string{"update-rc.d s disable"},
			answers: map[string]string{`sh -c ls /etc/rc[2345].d/S[0-9][0-9]"$0" s`: ""}},
		"chkconfig": {config: svc(bundle.Service{Name: "s", Enabled: &no}), has: []string{"/etc/init.d/s", "chkconfig"},
			answers: map[string]string{"chkconfig s": ""}, did: []string{"chkconfig s off"}},
		"a script that is missing": {config: svc(bundle.Service{Name: "s"}), err: "service s not found on this machine"},
		"no systemd":               {config: svc(bundle.Service{Name: "s", IsSystemd: true}), err: "no systemctl"},
	} {
		system := &fakeSystem{has: c.has, answers: c.answers}
		if c.answers == nil {
			system.answers = map[string]string{}
		}
		_, err := apply(t, system, c.config)
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		if !slices.Equal(system.did, c.did) {
			t.Errorf("%s: it did %q, want %q", name, system.did, c.did)
		}
	}
}

func TestCommandsHaveTheirOwnEnvironmentAndTests(t *testing.T) {
	t.Parallel()
	rules := func(test string, ignore bool, env ...string) bundle.CommandRules {
		return bundle.CommandRules{Test: test, IgnoreErrors: ignore, Env: env}
	}
	commands := []bundle.Command{
		{Name: "1", Argv: []string{"a", "b c"}, Dir: "/srv", CommandRules: rules("", false, "A=b")},
		{Name: "2", Shell: "never", CommandRules: rules("no", false)},
		{Name: "3", Shell: "no", CommandRules: rules("", true)},
		{Name: "4", Shell: "no"},
		{Name: "5", Shell: "after"},
	}
	system := &fakeSystem{fails: "no"}
	outcomes, err := apply(t, system, bundle.MachineConfig{Commands: commands})
	if want := []string{"commands 1: changed", "commands 2: skipped", "commands 3: failed, its errors are ignored"}; err ==
		nil || !slices.Equal(outcomes, want) {
		t.Errorf("outcomes %q, %v; want %q", outcomes, err, want)
	}
	if want := []string{`a b c env ["A=b"] in /srv`, "no", "no", "no"}; !slices.Equal(system.did, want) {
		t.Errorf("it did %q, want %q", system.did, want)
	}
}

func TestServicesAreRestartedAfterTheirDependenciesChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "app.conf")
	config := bundle.MachineConfig{
		Packages: []bundle.Package{{Manager: "yum", Name: "nginx"}},
		Files:    []bundle.MachineFile{{Path: path, Content: "one"}},
		Commands: []bundle.Command{{Name: "1", Shell: "true", CommandRules: bundle.CommandRules{Test: "test"}}},
	}
	restarts := func(system *fakeSystem, title string) bool {
		t.Helper()
		system.did, system.has = nil, []string{"systemctl"}
		config.Services = []bundle.Service{{Name: "s", IsSystemd: true, RestartFor: []string{title}}}
		if _, err := apply(t, system, config); err != nil {
			t.Fatal(err)
		}
		return slices.Contains(system.did, "systemctl restart s")
	}
	running := map[string]string{"systemctl is-active --quiet s": "", "rpm -q nginx": ""}
	if system := (&fakeSystem{answers: running}); !restarts(system, "files "+path) {
		t.Error("not restarted for a new file")
	} else if restarts(system, "files "+path) {
		t.Error("restarted for a file that is as it was")
	}
	if err := os.WriteFile(path, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	if !restarts(&fakeSystem{answers: running}, "files "+path) || !restarts(&fakeSystem{answers: running}, "commands 1") {
		t.Error("not restarted for a file that differs, or a command")
	}
	if restarts(&fakeSystem{answers: running, fails: "test"}, "commands 1") {
		t.Error("restarted for a command that was skipped")
	}
	if restarts(&fakeSystem{answers: running}, "packages yum nginx") {
		t.Error("restarted for a package that was there")
	}
	if restarts(&fakeSystem{answers: map[string]string{"rpm -q nginx": ""}}, "commands 1") {
		t.Error("started though it was not running")
	}
}
