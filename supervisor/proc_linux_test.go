package supervisor

import (
	"os"
	"strings"
	"syscall"
	"testing"

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
	for port, want := range map[int][]string{5000: {"4711", "4712"}, 8080: {"4714"}, 40000: nil} {
		if diff := cmp.Diff(want, listeners(strings.NewReader(procNetTCP), port)); diff != "" {
			t.Errorf("listeners on %d (-want +got):\n%s", port, diff)
		}
	}
}

func FuzzListeners(f *testing.F) {
	f.Add(procNetTCP, 5000)
	f.Add("a b:zz c 0A e f g h i j", 0)
	f.Fuzz(func(t *testing.T, text string, port int) {
		for _, inode := range listeners(strings.NewReader(text), port) {
			if inode == "" || !strings.Contains(text, inode) {
				t.Errorf("listeners made up the socket %q", inode)
			}
		}
	})
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text  string
		pid   int
		state byte
		pgrp  int
		ok    bool
	}{
		{"42 (app) S 1 40 40 0 -1", 42, 'S', 40, true},
		{"42 (a) Z 7 8) R 1 40 40 0", 42, 'R', 40, true},
		{"42 () Z 1 40", 42, 'Z', 40, true},
		{"42 (app S 1 40", 0, 0, 0, false},
		{"42 app) S 1 40", 0, 0, 0, false},
		{"x (app) S 1 40", 0, 'S', 40, false},
		{"42 (app) S 1", 0, 0, 0, false},
		{"", 0, 0, 0, false},
	}
	for _, tt := range tests {
		pid, state, pgrp, ok := parseStat([]byte(tt.text))
		if pid != tt.pid || state != tt.state || pgrp != tt.pgrp || ok != tt.ok {
			t.Errorf("parseStat(%q) = %d %c %d %t", tt.text, pid, state, pgrp, ok)
		}
	}
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Skipf("SKIPPED: no /proc here: %v", err)
	}
	if pid, _, pgrp, ok := parseStat(own); !ok || pid != os.Getpid() || pgrp != syscall.Getpgrp() {
		t.Errorf("parseStat of this process = %d, %d, %t, want %d, %d", pid, pgrp, ok, os.Getpid(), syscall.Getpgrp())
	}
}

func TestSurvives(t *testing.T) {
	t.Parallel()
	tests := []struct {
		stat string
		want bool
	}{
		{"42 (app) S 1 40 40", true},
		{"42 (app) T 1 40 40", true},
		{"42 (app) D 1 40 40", true},
		{"42 (app) Z 1 40 40", false},
		{"42 (app) X 1 40 40", false},
		{"40 (app) Z 1 40 40", false},
		{"40 (app) S 1 40 40", false},
		{"42 (app) S 1 41 40", false},
		{"", false},
	}
	for _, tt := range tests {
		if got := survives([]byte(tt.stat), 40); got != tt.want {
			t.Errorf("survives(%q, 40) = %t", tt.stat, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) Z 7 8) R 1 40 40 0"))
	f.Add([]byte(") ("))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, state, _, ok := parseStat(text); ok && state == 0 {
			t.Errorf("parseStat(%q) has no state", text)
		}
	})
}
