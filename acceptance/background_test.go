package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

func backgroundBundle(property, buildLine string) map[string]string {
	const term = "#!/bin/sh\nsetsid sh -c 'trap \"echo TERM >got-term; exit\" TERM; touch up; while :; do sleep 0.05; done' " +
		">/dev/null 2>&1 &\n"
	return map[string]string{
		"Procfile":  "web: ACCEPTANCE_ROLE=app ACCEPTANCE_JOURNAL=/dev/null ACCEPTANCE_VERSION=1 exec " + os.Args[0] + "\n",
		"Buildfile": "build: " + buildLine + "\n",
		".ebextensions/a.config": "option_settings:\n  aws:elasticbeanstalk:application:environment:\n    " + property +
			"\ncontainer_commands:\n  01:\n    command: setsid sleep 1000 >/dev/null 2>&1 &\n",
		".platform/hooks/predeploy/a.sh":  "#!/bin/sh\nsleep 1000 >/dev/null 2>&1 &\nnohup setsid sleep 1000 >/dev/null 2>&1 &\n",
		".platform/hooks/postdeploy/a.sh": term,
	}
}

// Even processes in other sessions must exit, including after SIGKILL or an aborted start.
func TestBackgroundProcessesOfHooksEndWithTendril(t *testing.T) {
	t.Parallel()
	const buildLine = "setsid sleep 1000 >/dev/null 2>&1 &"
	for name, c := range map[string]struct {
		buildLine string
		running   int
		signal    syscall.Signal
		wantTerm  bool
	}{
		"TERM":             {buildLine, 5, syscall.SIGTERM, true},
		"KILL":             {buildLine, 5, syscall.SIGKILL, false},
		"an aborted start": {"setsid sleep 1000 & sleep 1000", 2, syscall.SIGTERM, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value := filepath.Base(t.TempDir()) + t.Name()
			dir := writeBundle(t, backgroundBundle("ACCEPTANCE_MARK: "+`"`+value+`"`, c.buildLine))
			p := launchCommand(t, exec.Command(binary, "up", dir, "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0",
				"--console", "127.0.0.1:0", "--port", testpeer.FreePort(t), "--allow-root"))
			mark := "ACCEPTANCE_MARK=" + value
			await(t, "the processes run", func() bool {
				_, err := os.Stat(filepath.Join(dir, "up"))
				return len(survivors(mark)) >= c.running && (err == nil || c.running < 5)
			})

			p.cmd.Process.Signal(c.signal)
			<-p.exited
			await(t, "the processes are gone", func() bool { return len(survivors(mark)) == 0 })
			if _, err := os.Stat(filepath.Join(dir, "got-term")); (err == nil) != c.wantTerm {
				t.Errorf("TERM came: %t, want %t", err == nil, c.wantTerm)
			}
		})
	}
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 600 {
		if is() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("it did not come to pass that", what)
}
