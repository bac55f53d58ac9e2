package supervisor

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const procNetTCP = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1388 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 100 0 0 10 0
   1: 00000000:1388 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0000000000000000 100 0 0 10 0
   2: 0100007F:1388 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 4713 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4714 1 0000000000000000 100 0 0 10 0
   4: bad
`

func TestListeners(t *testing.T) {
	t.Parallel()
	for suffix, want := range map[string][]string{":1388": {"socket:[4711]", "socket:[4712]"},
		":1F90": {"socket:[4714]"}, ":9C40": nil} {
		got := slices.Sorted(maps.Keys(listeners(parseSockets(procNetTCP, suffix), suffix)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("listeners on %s (-want +got):\n%s", suffix, diff)
		}
	}
}

func FuzzParseSockets(f *testing.F) {
	f.Add(procNetTCP, ":1388")
	f.Add("a b:zz c 0A e f g h i j", "")
	f.Fuzz(func(t *testing.T, text, part string) {
		for _, s := range parseSockets(text, part) {
			if s.client.inode == "" || !strings.Contains(text, s.client.inode) {
				t.Errorf("it made up the socket %q", s.client.inode)
			}
		}
	})
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want process
		ok   bool
	}{
		{"42 (app) S 1 40 40 0 -1", process{pid: 42, ppid: 1, pgrp: 40, state: 'S'}, true},
		{"42 (a) Z 7 8) R 3 40 40 0", process{pid: 42, ppid: 3, pgrp: 40, state: 'R'}, true},
		{"42 () Z 1 40", process{pid: 42, ppid: 1, pgrp: 40, state: 'Z'}, true},
		{"7 (app) S 1 7 7 0 -1 4 0 0 0 0 11 12 13 14 20 0 1 0 9876 4096 55 0", process{
			pid: 7, ppid: 1, pgrp: 7, state: 'S', start: 9876, ticks: 23, memory: 55 * int64(os.Getpagesize()),
		}, true},
		{"42 (app S 1 40", process{}, false},
		{"42 app) S 1 40", process{}, false},
		{"x (app) S 1 40 40", process{}, false},
		{"42 (app) S 1", process{}, false},
		{"42 (app) \x00 1 40", process{}, false},
		{"42 (app) 5 1 40", process{}, false},
		{"", process{}, false},
	}
	for _, tt := range tests {
		if got, ok := parseStat([]byte(tt.text)); got != tt.want || ok != tt.ok {
			t.Errorf("parseStat(%q) = %+v, %t, want %+v, %t", tt.text, got, ok, tt.want, tt.ok)
		}
	}
	own, ok := readProcess(os.Getpid())
	if !ok {
		t.Skip("SKIPPED: no /proc here")
	}
	if own.pid != os.Getpid() || own.ppid != os.Getppid() || own.pgrp != syscall.Getpgrp() || !own.alive() ||
		own.start == 0 {
		t.Errorf("this process is %+v", own)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) Z 7 8) R 1 40 40 0"))
	f.Add([]byte(") ("))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, ok := parseStat(text); ok && p.state == 0 {
			t.Errorf("parseStat(%q) has no state", text)
		}
	})
}

// The process executes its program again and again. Its environment is empty for a part of this time.
func TestEnvironmentIsReadAgainWhileAProcessExecutesItsProgram(t *testing.T) {
	t.Parallel()
	const again = `exec /bin/sh -c "$0" "$0"`
	cmd := exec.Command("/bin/sh", "-c", again, again)
	cmd.Env = []string{"MARK=here"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()

	p, ok := readProcess(cmd.Process.Pid)
	if !ok {
		t.Fatal("the process has ended")
	}
	for range 2000 {
		deadline := time.Now().Add(execWait)
		if env := environOf(p, deadline); !hasEntry(env, "MARK=here") && time.Now().Before(deadline) && p.isNew() {
			t.Fatalf("the environment is %q", env)
		}
	}
}
