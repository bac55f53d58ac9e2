package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/internal/config"
	"tendril/internal/testing/testpeer"
)

// unit contains the values in order, keyed by "Section.Name".
type unit map[string][]string

// parseUnit lets an empty value clear the previous ones, as systemd does.
func parseUnit(texts ...string) unit {
	u := unit{}
	for _, text := range texts {
		section := ""
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			switch name, value, found := strings.Cut(line, "="); {
			case strings.HasPrefix(line, "["):
				section = strings.Trim(line, "[]")
			case strings.HasPrefix(line, "#") || !found:
			case value == "":
				u[section+"."+name] = nil
			default:
				u[section+"."+name] = append(u[section+"."+name], value)
			}
		}
	}
	return u
}

func (u unit) one(t *testing.T, name string) string {
	t.Helper()
	if len(u[name]) == 0 {
		t.Fatalf("%s is not set", name)
	}
	return u[name][len(u[name])-1]
}

func (u unit) seconds(t *testing.T, name string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(u.one(t, name) + "s")
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

func variables(text string) (environ []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			environ = append(environ, line)
		}
	}
	return environ
}

// services run tendril alone, with the app, or beside the app's unit.
var services = []struct {
	name, dropIn, settings string
}{
	{"alone", "", "systemd/tendril.env"},
	{"with an app", "systemd/app.conf", ""},
	{"beside an app", "systemd/beside.conf", "systemd/tendril.env"},
}

func TestTheServiceFitsTheOptions(t *testing.T) {
	t.Parallel()
	for _, s := range services {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			texts := []string{read(t, "systemd/tendril.service")}
			if s.dropIn != "" {
				texts = append(texts, read(t, s.dropIn))
			}
			u := parseUnit(texts...)
			states := slices.Sorted(slices.Values(u["Service.StateDirectory"]))
			environ := append(slices.Clone(u["Service.Environment"]),
				"STATE_DIRECTORY=/var/lib/"+strings.Join(states, ":/var/lib/"))
			if s.settings != "" {
				environ = append(environ, variables(read(t, s.settings))...)
			}
			if n := len(u["Service.ExecStart"]); n != 1 {
				t.Fatalf("%d commands to start", n)
			}
			command := strings.Fields(u.one(t, "Service.ExecStart"))
			cfg := checkUp(t, s.name, command[1:], environ)
			if cfg.DataDir != "/var/lib/tendril" {
				t.Errorf("with the folders %q the queues are in %s", states, cfg.DataDir)
			}
			hasApp := len(command) > 2
			if toTarget := !cfg.AnyToOwnApp(); hasApp == toTarget {
				t.Errorf("it runs an app: %t, and posts to one that runs: %t", hasApp, toTarget)
			}
			mustFit(t, u, cfg)
		})
	}
}

func mustFit(t *testing.T, u unit, cfg *config.Config) {
	t.Helper()
	if stop := u.seconds(t, "Service.TimeoutStopSec"); stop < cfg.ShutdownTimeout+10*time.Second {
		t.Errorf("systemd kills after %s, and the drain may take %s", stop, cfg.ShutdownTimeout)
	}
	if start := u.seconds(t, "Service.TimeoutStartSec"); start < cfg.AppReadyTimeout+10*time.Second {
		t.Errorf("systemd gives up after %s, and the app may take %s", start, cfg.AppReadyTimeout)
	}
	for name, want := range map[string]string{
		"Service.Type":          "notify",
		"Service.KillMode":      "mixed", // SIGTERM to tendril only
		"Service.ExecReload":    "/bin/kill -HUP $MAINPID",
		"Service.Restart":       "on-failure", // stays down after "tendril drain"
		"Service.OOMPolicy":     "continue",
		"Service.WatchdogSec":   "30",
		"Install.WantedBy":      "multi-user.target",
		"Service.UMask":         "0077",
		"Service.ProtectSystem": "strict",
	} {
		if got := u.one(t, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	// A drop-in may add folders; the first one contains the data.
	if first := strings.Fields(strings.Join(u["Service.StateDirectory"], " "))[0]; "/var/lib/"+first != cfg.DataDir {
		t.Errorf("the state directory is %s, and data lies in %s", first, cfg.DataDir)
	}
}

// systemd-analyze looks for the program, so install replaces tendril with an existing one.
func install(t *testing.T, dropIn string, more string) (path string) {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "/usr/bin/tendril", "/bin/true")), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	put("orders.service", "[Service]\nExecStart=/bin/true\n")
	if dropIn != "" {
		put("tendril.service.d/drop-in.conf", read(t, dropIn))
	}
	return put("tendril.service", read(t, "systemd/tendril.service")+more)
}

func analyze(t *testing.T, unit string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("systemd-analyze", append(args, unit)...)
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+filepath.Dir(unit)+":", "SYSTEMD_COLORS=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestSystemdAnalyzeAcceptsTheService(t *testing.T) {
	t.Parallel()
	testpeer.Program(t, "systemd-analyze")
	for _, s := range services {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			unit := install(t, s.dropIn, "")
			// systemd-analyze warns about unknown directives and still exits with 0.
			if out, err := analyze(t, unit, "verify"); err != nil || out != "" {
				t.Errorf("systemd-analyze verify: %v\n%s", err, out)
			}
			if out, err := analyze(t, unit, "security", "--offline=true", "--threshold=20", "--no-pager"); err != nil {
				t.Errorf("systemd-analyze security finds too much that the service may do: %v\n%s", err, out)
			}
		})
	}
	t.Run("a mistake is found", func(t *testing.T) {
		t.Parallel()
		if out, _ := analyze(t, install(t, "", "[Service]\nWatchdogSecs=30\n"), "verify"); !strings.Contains(out,
			"WatchdogSecs") {
			t.Errorf("systemd-analyze verify says %q of an assignment that does not exist", out)
		}
		if out, err := analyze(t,
			install(t, "", "[Service]\nProtectSystem=no\nNoNewPrivileges=no\nPrivateDevices=no\nRestrictNamespaces=no\n"+
				"SystemCallFilter=\n"), "security", "--offline=true", "--threshold=20", "--no-pager"); err == nil {
			t.Errorf("systemd-analyze security accepts a loose service:\n%s", out)
		}
	})
}

func TestTheServicesUserIsMade(t *testing.T) {
	t.Parallel()
	u, users := parseUnit(read(t, "systemd/tendril.service")), read(t, "systemd/tendril.sysusers.conf")
	if user := u.one(t, "Service.User"); !strings.Contains(users, "\nu "+user+" ") {
		t.Errorf("the service runs as %s, which is not made", user)
	}
	testpeer.Program(t, "systemd-sysusers")
	root := t.TempDir()
	if out, err := tool("", "systemd-sysusers", "--root="+root, "--dry-run", "--replace=/etc/sysusers.d/tendril.conf",
		mustAbs(t, "systemd/tendril.sysusers.conf")); err != nil {
		t.Errorf("systemd-sysusers: %v\n%s", err, out)
	}
}

func TestScriptsFindGetConfig(t *testing.T) {
	t.Parallel()
	testpeer.Program(t, "systemd-tmpfiles")
	root := t.TempDir()
	out, err := tool("", "systemd-tmpfiles", "--create", "--root="+root, mustAbs(t, "systemd/tendril.tmpfiles.conf"))
	link, missing := os.Readlink(filepath.Join(root, "opt/elasticbeanstalk/bin/get-config"))
	if err != nil || missing != nil || !strings.HasPrefix(
		parseUnit(read(t, "systemd/tendril.service")).one(t, "Service.ExecStart"), link+" ") {
		t.Errorf("get-config is a link to %q, not to the service's program: %v, %v\n%s", link, err, missing, out)
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
