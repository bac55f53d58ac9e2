package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/cli"
	"tendril/internal/cli/base"
)

var update = flag.Bool("update", false, "write the golden files anew")

func generated(t *testing.T, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	app := filepath.Join(dir, "orders")
	if err := os.Mkdir(app, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"Procfile": "web: python3 app.py\n", "requirements.txt": "boto3\n"} {
		if err := os.WriteFile(filepath.Join(app, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range args {
		args[i] = strings.Replace(args[i], "/srv/orders", app, 1)
	}
	var out, talk bytes.Buffer
	environ := []string{"HOME=" + dir}
	if args[0] != "generate" {
		environ, args = append(environ, args[0]), args[1:]
	}
	c := &base.CLI{Version: version, In: strings.NewReader(""), Out: &out, Err: &talk, Args: args, Environ: environ}
	root := cli.NewRoot(c)
	root.SetArgs(args)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("tendril %q: %v\n%s", args, err, talk.String())
	}
	return strings.ReplaceAll(out.String(), app, "/srv/orders")
}

// The tests in deploy check these files with the tools that read them.
func TestDeployFilesAreGenerated(t *testing.T) {
	const queues = "https://sqs.eu-west-1.amazonaws.com/123456789012/"
	for file, args := range map[string][]string{
		"../../deploy/kubernetes/sidecar.yaml": {"kubernetes", "--name=orders", "--queue-url=" + queues + "orders",
			"--registry-table=orders-registry", "--registry-create", "--target=http://127.0.0.1:8080/", "--shutdown-timeout=90s",
			"--image=app:1"},
		"../../deploy/kubernetes/worker.yaml": {"kubernetes", "--name=reports", "--queue-url=" + queues + "reports",
			"--registry-table=reports-registry", "--registry-create", "--shutdown-timeout=300s", "../../examples/reports"},
		"../../deploy/kubernetes/keda.yaml": {"keda", "--name=orders", "--queue-url=" + queues + "orders",
			"--target=http://127.0.0.1:8080/"},
		"../../deploy/docker/compose.yaml": {"compose", "--name=orders", "--target=http://127.0.0.1:8080/",
			"--shutdown-timeout=300s", "--image=app:1"},
		"testdata/generate/orders.service":    {"systemd", "/srv/orders"},
		"testdata/generate/orders.Dockerfile": {"docker", "/srv/orders"},
	} {
		args = append([]string{"generate"}, args...)
		if strings.Contains(file, "kubernetes") {
			args = append([]string{"TENDRIL_FLEET_KEY=a-key-of-the-fleet"}, args...)
		}
		got := generated(t, args...)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s is not what generate prints (-file +printed):\n%s", file, diff)
		}
	}
}

var shownOutput = regexp.MustCompile("(?s)\n    tendril (generate [^\n]*)\n\n```[a-z]*\n(.*?)```\n")

func TestPageShowsWhatIsGenerated(t *testing.T) {
	const path = "../../docs/deploy.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, kinds := string(page), map[string]bool{}
	for _, m := range shownOutput.FindAllStringSubmatch(text, -1) {
		args := words(m[1])
		kinds[args[1]] = true
		got := generated(t, args...)
		if *update {
			text = strings.Replace(text, m[2], got, 1)
		} else if diff := cmp.Diff(m[2], got); diff != "" {
			t.Errorf("tendril %s (-page +printed):\n%s", m[1], diff)
		}
	}
	for _, kind := range []string{"compose", "iam"} {
		if !kinds[kind] {
			t.Errorf("the page does not show what generate %s prints", kind)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
