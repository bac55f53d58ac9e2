package environment

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tendril/internal/bundle"
)

func TestFunctionRunsAsTheSettingsSay(t *testing.T) {
	t.Parallel()
	const show = `echo "user $(id -u):$(id -g), files $(ulimit -n), color $COLOR, token [$TENDRIL_CONSOLE_TOKEN]"; exec sleep 600`
	t.Run("limits and properties", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		extensions := filepath.Join(dir, ".ebextensions")
		property := "option_settings:\n  aws:elasticbeanstalk:application:environment:\n    COLOR: red\n"
		if err := errors.Join(os.Mkdir(extensions, 0o755),
			os.WriteFile(filepath.Join(extensions, "env.config"), []byte(property), 0o644)); err != nil {
			t.Fatal(err)
		}
		b, err := bundle.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, map[string]string{"queue": "jobs", "lambda": show, "allow-root": "true", "app-limit": "nofile=77"},
			func(e *Environment) {
				e.opts.Bundle, e.opts.AppEnv = b, append(os.Environ(), "TENDRIL_CONSOLE_TOKEN=0123456789abcdef")
			})
		eventually(t, "its output", func() bool { return strings.Contains(r.log.String(), "files 77, color red, token []") })
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
	t.Run("user and log files", func(t *testing.T) {
		t.Parallel()
		if os.Geteuid() != 0 {
			t.Skip("SKIPPED: only root may change the user")
		}
		logs := filepath.Join(t.TempDir(), "logs")
		r := run(t, map[string]string{"queue": "jobs", "lambda": show, "app-user": "54340:54341", "app-log-dir": logs}, nil)
		eventually(t, "its log file", func() bool {
			text, _ := os.ReadFile(filepath.Join(logs, "function.1.stdout.log"))
			return strings.Contains(string(text), "user 54340:54341,")
		})
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}
