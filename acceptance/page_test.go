package acceptance

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tendril/internal/testing/testpeer"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func fenced(t *testing.T, text, start string) string {
	t.Helper()
	for i, part := range strings.Split(text, "\n```") {
		if i%2 == 0 {
			continue
		}
		if _, block, _ := strings.Cut(part, "\n"); strings.HasPrefix(block, start) {
			return block + "\n"
		}
	}
	t.Fatalf("no fenced block begins with %q", start)
	return ""
}

func tendril(t *testing.T, dir string, env []string, args ...string) (output string, code int) {
	t.Helper()
	cmd := program(t, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir(),
		"TENDRIL_LISTEN=127.0.0.1:0", "TENDRIL_CONSOLE=127.0.0.1:0", "TENDRIL_PORT="+testpeer.FreePort(t)) // unused by other tests
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return ownWarning.ReplaceAllString(string(out), ""), cmd.ProcessState.ExitCode()
}

// This test's own TENDRIL_LISTEN causes ownWarning.
var ownWarning = regexp.MustCompile("(?m)^warning: TENDRIL_LISTEN: .*\n")

var (
	typedUp    = regexp.MustCompile("(?m)(?:^    |`)tendril up([^`\n#]*)")
	shellWords = regexp.MustCompile(`'[^']*'|\S+`)
)

func TestPagesSettings(t *testing.T) {
	t.Parallel()
	app := t.TempDir()
	if err := os.WriteFile(filepath.Join(app, "Procfile"), []byte("web: python3 app.py\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range []string{"README.md", "docs/guide.md", "docs/handler.md", "docs/send.md", "docs/retries.md",
		"docs/amazon-sqs.md", "docs/share.md", "docs/from-workerless.md", "docs/queues.md", "docs/lambda.md",
		"docs/bundles.md", "docs/app.md", "docs/scaling.md"} {
		for _, m := range typedUp.FindAllStringSubmatch(page(t, name), -1) {
			args := []string{"check"}
			for _, w := range shellWords.FindAllString(m[1], -1) {
				if w == "…" {
					w = app
				}
				args = append(args, strings.Trim(strings.ReplaceAll(w, "path/to/app", app), "'"))
			}
			if strings.Contains(m[1], "/etc/") || strings.Contains(m[1], ".zip") || strings.Contains(m[1], "DIR") {
				continue
			}
			found++
			dir := ".."
			if len(args) == 1 || args[1] == "." {
				dir = app
			}
			if out, code := tendril(t, dir, nil, args...); code != 0 || strings.Contains(out, "warning") {
				t.Errorf("%s: tendril up%s: %d\n%s", name, m[1], code, out)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d command lines were found: the pattern misses them", found)
	}
}

func TestQueuesPageSettings(t *testing.T) {
	t.Parallel()
	text, dir := page(t, "docs/queues.md"), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tendril.yaml"), []byte(fenced(t, text, "name: shop")), 0o644); err != nil {
		t.Fatal(err)
	}
	want := fenced(t, text, "process  web: python3 app.py\nfile")
	check := typedLine(t, text, "check -- ")
	for _, args := range [][]string{check, slices.Insert(slices.Clone(check), 1, "--config", "tendril.yaml")} {
		if out, code := tendril(t, dir, nil, args...); code != 0 || out != want {
			t.Errorf("%v: %d\n%s\nwant\n%s", args, code, out, want)
		}
	}
	for key, value := range map[string]string{"max_wait": "60s", "max": "2", "target": "http://127.0.0.1:8080",
		"function": "make-report", "lambda": "./bin/resize"} {
		if out, _ := tendril(t, dir, nil, "explain",
			"queues"); !regexp.MustCompile(`(?m)^    ` + key + ` +` + regexp.QuoteMeta(value) +
			` \(tendril.yaml:\d+\)$`).MatchString(out) {
			t.Errorf("no queue has %s %s:\n%s", key, value, out)
		}
	}
}

func TestWorkerlessPageSettings(t *testing.T) {
	t.Parallel()
	text := page(t, "docs/from-workerless.md")
	want := fenced(t, text, "queue    payments (sqs)")
	flags := []string{"--function=my-function", "--queues=payments:3,submissions:2,default:1", "--poll-for=10",
		"--sleep=0"}
	if !strings.Contains(text, "tendril check "+strings.Join(flags, " ")+"\n") {
		t.Error("the page shows the output of another command")
	}
	if out, code := tendril(t, t.TempDir(), nil, append([]string{"check"}, flags...)...); code != 0 || out != want {
		t.Errorf("%d\n%s\nwant\n%s", code, out, want)
	}
	env := []string{"WORKERLESS_FUNCTION=my-function", "WORKERLESS_QUEUES=payments:3,submissions:2,default:1",
		"WORKERLESS_POLL_FOR=10", "WORKERLESS_SLEEP=0",
		"WORKERLESS_CONCURRENCY=20", "WORKERLESS_NAME=my-app-staging", "WORKERLESS_METRICS_INTERVAL=30"}
	if out, code := tendril(t, t.TempDir(), env, "check"); code != 0 || out != want {
		t.Errorf("with variables: %d\n%s\nwant\n%s", code, out, want)
	}
	for option, value := range map[string]string{"wait-time": "10s", "http-connections": "20", "name": "my-app-staging",
		"metrics-interval": "30s", "cloudwatch": "on"} {
		if out, code := tendril(t, t.TempDir(), env, "explain", option); code != 0 ||
			!regexp.MustCompile(`(?m)^  value +`+value+`\b`).MatchString(out) {
			t.Errorf("%s is not %s:\n%s", option, value, out)
		}
	}
}

func TestWorkerlessPageSurprises(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"check --function f --queues a,b --poll-for 21", 2, "0s to 20s"},
		{"check --function f --queues a:2,b", 2, "a:2,b:1"},
		{"check --function f --queues a --concurrency 1001", 2, "1000"},
		{"check --queues a --lambda ./fn", 0, "a (embedded)"},
		{"check --queues a --lambda ./fn --backend sqs", 0, "a (sqs)"},
		{"explain cloudwatch --function f --queues a,b", 0, "off (default: no name was set)"},
		{"explain cloudwatch --function f --queues a,b --name n", 0, "on (default: a name was set)"},
		{"explain cloudwatch --function f --queues a,b --name n --cloudwatch off", 0, "off (--cloudwatch)"},
		{"explain cloudwatch --queues a,b --name n", 0, "off (default: no queue or function is on AWS itself)"},
		{"explain http-connections -concurrency=20", 0, "20 (--concurrency)"},
	} {
		if out, code := tendril(t, t.TempDir(), nil, strings.Fields(c.args)...); code != c.code ||
			!strings.Contains(out, c.says) {
			t.Errorf("tendril %s: %d, want %d and %q\n%s", c.args, code, c.code, c.says, out)
		}
	}
}
