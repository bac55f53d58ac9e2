// Package deploy_test checks the files in this folder without deploying: each file with the tool that reads it, and
// tendril's settings in them with tendril.
package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tendril/internal/config"
)

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func tool(input string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func checkUp(t *testing.T, where string, args, environ []string) *config.Config {
	t.Helper()
	if len(args) == 0 || args[0] != "up" {
		t.Fatalf("%s: the command is %q, not up", where, args)
	}
	flags, dirs := map[string]string{}, 0
	for _, arg := range args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		if !strings.HasPrefix(arg, "-") {
			dirs++
			continue
		}
		if _, known := config.Lookup(name); !known {
			t.Errorf("%s: there is no option %s", where, name)
		}
		flags[strings.TrimPrefix(name, "--")] = value
	}
	if dirs > 1 {
		t.Errorf("%s: up takes one folder, not %q", where, args)
	}
	given := []string{"HOME=/absent"}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" {
			entry = name + "=what-the-secret-holds"
		}
		if _, known := config.Lookup(name); !known && strings.HasPrefix(name, "TENDRIL_") {
			t.Errorf("%s: there is no variable %s", where, name)
		}
		given = append(given, entry)
	}
	cfg, err := config.Load(config.Sources{Flags: flags, Environ: given, Dir: t.TempDir(), SystemFile: "/none"})
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	for _, w := range cfg.Warnings {
		t.Errorf("%s: %s", where, w)
	}
	return cfg
}

var commandUse = regexp.MustCompile(`Use:\s+"([a-z]+)`)

func mustBeCommand(t *testing.T, where, name string) {
	t.Helper()
	files, err := filepath.Glob("../internal/cli/*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources of the command: %v", err)
	}
	for _, file := range files {
		for _, m := range commandUse.FindAllStringSubmatch(read(t, file), -1) {
			if m[1] == name {
				return
			}
		}
	}
	t.Errorf("%s: tendril has no command %q", where, name)
}
