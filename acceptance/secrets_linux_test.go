package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tendril/internal/testing/testpeer"
)

func TestAppOfTheSameUserCannotReadTheSigningKeyInMemory(t *testing.T) {
	t.Parallel()
	const key = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	const user = 65106
	dir, data := t.TempDir(), t.TempDir()
	const app = "web: for name in /proc/[0-9]*; do" +
		" { cat $name/environ; head -c 1 $name/mem; ls $name/fd; } >/tmp/$$ 2>/dev/null;" +
		" grep -q sBQIhrscChlQIMV /tmp/$$ && echo found in $name; done; rm /tmp/$$; echo looked everywhere; exec sleep 1000\n"
	if err := os.WriteFile(filepath.Join(dir, "Procfile"), []byte(strings.ReplaceAll(app, "/tmp/$$", dir+"/seen")),
		0o644); err != nil {
		t.Fatal(err)
	}
	cmd := program(t, "up", dir, "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--port",
		testpeer.FreePort(t))
	cmd.Env = []string{"TENDRIL_SIGNING_SECRET=" + key}
	if os.Geteuid() == 0 {
		openTo(t, dir, user)
		openTo(t, data, user)
		cmd.Path = copyFor(t, dir, cmd.Path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		cmd.Env = append(cmd.Env, "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir)
	}

	p := launchCommand(t, cmd)
	p.await(t, "the app has looked at every process", func(e event) bool { return e.Line == "looked everywhere" })

	if p.count(func(e event) bool { return strings.HasPrefix(e.Line, "found in /proc/") }) > 0 {
		t.Errorf("the app reads the key of process %d", p.cmd.Process.Pid)
	}
	doctor := exec.Command(cmd.Path, "doctor", "--data-dir", data)
	doctor.Env, doctor.SysProcAttr = cmd.Env, cmd.SysProcAttr
	if out, _ := doctor.CombinedOutput(); !strings.Contains(string(out), "the environment runs this binary") {
		t.Errorf("doctor does not recognise the program: %s", out)
	}
}

func openTo(t *testing.T, dir string, user int) {
	t.Helper()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, user, user); err != nil {
		t.Fatal(fmt.Errorf("giving %s away: %w", dir, err))
	}
}
