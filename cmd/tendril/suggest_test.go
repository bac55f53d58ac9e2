package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tendril/internal/cli"
	"tendril/internal/cli/base"
)

func TestSuggestions(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"upp":                        "did you mean 'tendril up'?",
		"statsu":                     "did you mean 'tendril status'?",
		"desc":                       "did you mean 'tendril describe'?",
		"start":                      "did you mean 'tendril up'?",
		"ls":                         "did you mean 'tendril ps'?",
		"env":                        "did you mean 'tendril ps'?",
		"dlq":                        "did you mean 'tendril dead'?",
		"CRON":                       "did you mean 'tendril tasks'?",
		"retry":                      "did you mean 'tendril dead redrive' or 'tendril message retry'?",
		"xyzzy":                      "see 'tendril --help'",
		"testdata":                   "did you mean 'tendril up testdata'?",
		"queues rm":                  "did you mean 'tendril queues delete'?",
		"dead retry x":               "did you mean 'tendril dead redrive'?",
		"tasks lst":                  "did you mean 'tendril tasks list'?",
		"tasks xyzzy":                "see 'tendril tasks --help'",
		"up --qeue-url x":            "did you mean --queue-url?",
		"up -qeue-url x":             "did you mean --queue-url?",
		"up --queue_url x":           "did you mean --queue-url?",
		"up --VisibilityTimeout 5":   "did you mean --visibility-timeout?",
		"up --concurency 5":          "did you mean --concurrency?",
		"up --workers 5":             "did you mean --http-connections?",
		"up -e orders":               "did you mean --name?",
		"status --name orders":       "did you mean --environment?",
		"status --jsn":               "see 'tendril status --help'",
		"status --json":              "did you mean --output?",
		"status --queue-url x":       "--queue-url is a flag of 'tendril up'",
		"reload --split":             "--split is a flag of 'tendril generate systemd'",
		"up --queue":                 "use --queue=jobs",
		"up --inactivity-timeout":    "use --inactivity-timeout=3m",
		"peek --limit":               "use --limit=INTEGER",
		"peek --limit two":           "use digits only, such as --limit=10",
		"drain --wait soon":          "use a number and its unit (ms, s, m or h), such as --wait=30s",
		"status -o xml":              "use table, json, yaml or name",
		"send --ndjson=maybe":        "write --ndjson alone for true, or --ndjson=false",
		"status orders":              "to choose an environment, type: tendril status -e orders",
		"version x":                  "usage: tendril version [flags]",
		"queues purge":               "name one: tendril queues purge QUEUE",
		"--queue-ur x --target http": "did you mean --queue-url?",
	} {
		checkSuggestion(t, want, strings.Fields(line)...)
	}
}

func checkSuggestion(t *testing.T, want string, args ...string) {
	t.Helper()
	var out, talk bytes.Buffer
	c := &base.CLI{In: strings.NewReader(""), Out: &out, Err: &talk}
	code := cli.Execute(c, args)
	lines := strings.Split(strings.TrimSuffix(talk.String(), "\n"), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "long flags") })
	if code != base.ExitUsage || out.Len() > 0 || len(lines) != 2 || !strings.HasPrefix(lines[0], "tendril: ") ||
		lines[1] != "hint: "+want {
		t.Errorf("tendril %q: exit %d\n%s%swant the hint %q", args, code, &out, &talk, want)
	}
}

func TestSuggestedCommandsAreQuoted(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "my app")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	checkSuggestion(t, "did you mean 'tendril up '"+folder+"''?", folder)
	checkSuggestion(t, "to choose an environment, type: tendril status -e 'my app'", "status", "my app")
}
