package runtimeapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	o, err := Options{Command: []string{"sh"}, Env: []string{"AWS_DEFAULT_REGION=eu-west-3"}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := os.Getwd()
	if o.Instances != 1 || o.Timeout != 15*time.Minute || o.Grace != 2*time.Second ||
		o.Name != "function" || o.Region != "eu-west-3" || o.Dir != dir ||
		functionARN(&o) != "arn:aws:lambda:eu-west-3:000000000000:function:function" {
		t.Errorf("%+v", o)
	}
}

func TestRefusedOptions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"script.py": 0o600, "tool": 0o700} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		o    Options
		says string
	}{
		"no command":        {Options{}, "has no command"},
		"empty command":     {Options{Command: []string{""}}, "empty program name"},
		"NUL":               {Options{Command: []string{"sh", "a\x00b"}}, "NUL"},
		"missing":           {Options{Command: []string{"./bootstrap"}, Dir: dir}, "no such file"},
		"not executable":    {Options{Command: []string{"./script.py"}, Dir: dir}, "chmod +x"},
		"a folder":          {Options{Command: []string{dir}}, "not an executable file"},
		"not in PATH":       {Options{Command: []string{"no-such-tool"}}, "use its full path"},
		"in the folder":     {Options{Command: []string{"tool"}, Dir: dir}, "use its full path"},
		"PATH of its own":   {Options{Command: []string{"sh"}, Env: []string{"PATH=" + dir}}, "in PATH"},
		"name":              {Options{Command: []string{"sh"}, Name: "a b"}, "use 1 to 64"},
		"nameless variable": {Options{Command: []string{"sh"}, Env: []string{"A=1", "=secret"}}, "entry 2"},
		"variable with NUL": {Options{Command: []string{"sh"}, Env: []string{"TOKEN=secret\x00"}}, `"TOKEN"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(c.o)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want it to say %q", err, c.says)
			}
		})
	}
}

func TestEnviron(t *testing.T) {
	t.Parallel()
	o, err := Options{Command: []string{"/bin/sh"}, Name: "resize",
		Env: []string{"A=1", "A=2", "TZ=Europe/Berlin", "AWS_LAMBDA_RUNTIME_API=evil:1", "AWS_REGION=eu-west-1",
			"_HANDLER=theirs", "_X_AMZN_TRACE_ID=old", "LANG=C.UTF-8", "AWS_SECRET_ACCESS_KEY=s=="}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	env := environ(&o, "127.0.0.1:9001", time.Date(2026, 11, 3, 23, 0, 0, 0, time.FixedZone("", -3*3600)))
	for name, want := range map[string]string{
		"A": "2", "TZ": ":UTC", "AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9001", "AWS_REGION": "eu-west-1",
		"AWS_DEFAULT_REGION": "eu-west-1", "_HANDLER": "",
		"_X_AMZN_TRACE_ID": "", "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "AWS_SECRET_ACCESS_KEY": "s==",
		"AWS_LAMBDA_LOG_GROUP_NAME":      "/aws/lambda/resize",
		"AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128",
	} {
		if got := lookup(env, name); got != want {
			t.Errorf("%s=%s, want %q", name, got, want)
		}
	}
	if stream := lookup(env, "AWS_LAMBDA_LOG_STREAM_NAME"); !strings.HasPrefix(stream, "2026/11/04/[$LATEST]") ||
		len(stream) != 20+32 {
		t.Errorf("log stream %q", stream)
	}
	names := map[string]int{}
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		names[name]++
	}
	delete(names, "A")
	for name, n := range names {
		if n > 1 {
			t.Errorf("%s is set %d times", name, n)
		}
	}
}

func TestExitWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		exit          Exit
		words, lambda string
	}{
		{Exit{}, "exit status 0", "Runtime exited without providing a reason"},
		{Exit{Code: 7}, "exit status 7", "Runtime exited with error: exit status 7"},
		{Exit{Code: -1, Signal: "SIGTERM"}, "killed by SIGTERM", "Runtime exited with error: signal: terminated"},
		{Exit{Code: -1, Signal: "signal 34"}, "killed by signal 34", "Runtime exited with error: signal: signal 34"},
		{Exit{Code: -1, Err: os.ErrPermission}, "could not start: permission denied",
			"Couldn't start the runtime: permission denied"},
	} {
		if got := c.exit.String(); got != c.words {
			t.Errorf("%q, want %q", got, c.words)
		}
		if got := exitMessage(c.exit); got != c.lambda {
			t.Errorf("%q, want %q", got, c.lambda)
		}
	}
}
