package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// treeOf must be called before s starts its first process.
func treeOf(s *Supervisor) (tree func() *processTree) {
	first := make(chan *processTree, 10)
	newSystem := s.newSystem
	s.newSystem = func() *system {
		sys := newSystem()
		start := sys.start
		sys.start = func(p *Process, out *output) (*child, error) {
			c, err := start(p, out)
			if err == nil {
				first <- c.group.(*osGroup).tree
			}
			return c, err
		}
		return sys
	}
	return sync.OnceValue(func() *processTree { return <-first })
}

func TestAStormOfForksIsCleared(t *testing.T) {
	t.Parallel()
	eachTreeKind(t, func(t *testing.T, with func(*Supervisor) *Supervisor) {
		w := newObserver(t)
		p := Process{
			Name: "w", Env: append(childEnv("ignore-term", w.address()), "PATH=/usr/bin:/bin", "SELF="+selfPath()),
			Shell: `trap '' TERM; i=0; while [ $i -lt 40 ]; do setsid sleep 600 & i=$((i+1)); done; setsid "$SELF" & i=0; while [ $i -lt 400 ]; do setsid sleep 600 & i=$((i+1)); done; wait`,
		}
		s, _ := realSupervisor(t, Options{Grace: 50 * time.Millisecond}, p)
		tree := treeOf(with(s))
		start(t, s)
		g := w.next()
		deadline := time.Now().Add(hangGuard)
		for err := s.Stop(t.Context()); err != nil; err = s.Stop(t.Context()) {
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
		g.awaitGone()
		for k := tree(); !k.empty(); <-time.After(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("survivors: %+v", k.members())
			}
		}
	})
}

func TestReusedProcessIDsAreNotSignalled(t *testing.T) {
	t.Parallel()
	second := bystander(t)
	p, ok := readProcess(second.pid)
	if !ok {
		t.Fatal("the bystander is not to be seen")
	}
	before := p
	before.start--
	newMarkedTree().signalOne(before, syscall.SIGKILL)
	if c := newCgroupTree(findCgroups()); c != nil {
		c.signalOne(p, syscall.SIGKILL)
		c.release()
	}
	second.answers()
}

// Kernels before 5.14 have no cgroup.kill.
func TestControlGroupWithoutKill(t *testing.T) {
	t.Parallel()
	if !slices.Contains(treeKinds(t), "cgroup") {
		t.Skip("SKIPPED: no control group can be made here")
	}
	w := newObserver(t)
	s, _ := realSupervisor(t, Options{}, daemonizer("daemonize", w, "ignore-term", "ignore-term"))
	tree := treeOf(s)
	start(t, s)
	children := []*reportingChild{w.next(), w.next(), w.next()}
	k := tree()
	folder := k.cgroup.folder
	old := &processTree{cgroup: &cgroup{cgroupFolder: k.cgroup.cgroupFolder}}
	if err := old.cgroup.write("cgroup.freeze", "1"); err != nil {
		t.Fatal(err)
	}
	if n := old.signalEscaped(syscall.SIGKILL, map[processID]bool{}); n != 3 {
		t.Errorf("%d processes killed, want 3", n)
	}
	for _, g := range children {
		g.awaitGone()
	}
	stop(t, s)
	if _, err := os.Stat(folder); err == nil {
		t.Errorf("%s is left", folder)
	}
}

func TestNestedControlGroupsAreRemoved(t *testing.T) {
	t.Parallel()
	k := newCgroupTree(findCgroups())
	if k == nil {
		t.Skip("SKIPPED: no control group can be made here")
	}
	inner := filepath.Join(k.cgroup.folder, "a", "b")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := k.cgroup.folders(); len(got) != 3 {
		t.Errorf("folders %q, want three", got)
	}
	k.release()
	if _, err := os.Stat(k.cgroup.folder); err == nil {
		t.Errorf("%s is left", k.cgroup.folder)
	}
	if !k.empty() {
		t.Error("a control group that is gone is not empty")
	}
}

func TestCgroupMount(t *testing.T) {
	t.Parallel()
	const hybrid = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
`
	tests := []struct{ text, root, point string }{
		{hybrid, "/", "/sys/fs/cgroup/unified"},
		{"29 22 0:26 /../../pod /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n", "/../../pod", "/sys/fs/cgroup"},
		{"29 22 0:26 / - cgroup2 x rw", "", ""},
		{"", "", ""},
	}
	for _, tt := range tests {
		if root, point := cgroupMount(tt.text); root != tt.root || point != tt.point {
			t.Errorf("cgroupMount(%q) = %q, %q, want %q, %q", tt.text, root, point, tt.root, tt.point)
		}
	}
}

func TestCgroupAt(t *testing.T) {
	t.Parallel()
	tests := []struct{ root, point, path, folder string }{
		{"/", "/sys/fs/cgroup", "/", "/sys/fs/cgroup"},
		{"/", "/sys/fs/cgroup", "/system.slice/tendril.service", "/sys/fs/cgroup/system.slice/tendril.service"},
		{"/docker/a1", "/sys/fs/cgroup", "/docker/a1", "/sys/fs/cgroup"},
		{"/docker/a1", "/sys/fs/cgroup", "/docker/a1/x", "/sys/fs/cgroup/x"},
		{"/docker/a1", "/sys/fs/cgroup", "/docker/a12", ""},
		{"/docker/a1", "/sys/fs/cgroup", "/elsewhere", ""},
		{"/", "/sys/fs/cgroup", "/../outside", ""},
		{"/", "/sys/fs/cgroup", "/a b", ""},
		{"/", "/sys/fs/cgroup", "/a$(b)", ""},
		{"/", "", "/", ""},
		{"/", "/sys/fs/cgroup", "", ""},
	}
	for _, tt := range tests {
		got := cgroupAt(tt.root, tt.point, tt.path)
		if got.folder != tt.folder || tt.folder != "" && got.path != tt.path {
			t.Errorf("cgroupAt(%q, %q, %q) = %+v, want folder %q", tt.root, tt.point, tt.path, got, tt.folder)
		}
	}
}

func TestCgroupPath(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0::/\n": "/", "9:name=systemd:/\n0::/a/b\n": "/a/b", "4:memory:/x\n": "", "": "",
	} {
		if got := cgroupPath(text); got != want {
			t.Errorf("cgroupPath(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzCgroupMount(f *testing.F) {
	f.Add("41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/a\n")
	f.Add("41 31 0:38 /a /b rw - cgroup2 x", "0::/a/../c")
	f.Fuzz(func(t *testing.T, mounts, own string) {
		root, point := cgroupMount(mounts)
		at := cgroupAt(root, point, cgroupPath(own))
		if at.folder != "" &&
			(!strings.HasPrefix(at.folder, filepath.Clean(point)) || strings.ContainsAny(at.folder, " \n$`")) {
			t.Errorf("folder %q is not in %q, or not fit for a shell", at.folder, point)
		}
	})
}

func TestDescent(t *testing.T) {
	t.Parallel()
	all := []process{
		{pid: 1, ppid: 0, pgrp: 1, state: 'S'},
		{pid: 10, ppid: 1, pgrp: 10, state: 'S'},
		{pid: 11, ppid: 10, pgrp: 10, state: 'S'},
		{pid: 12, ppid: 1, pgrp: 10, state: 'S'},  // in the leader's group, but orphaned
		{pid: 13, ppid: 11, pgrp: 13, state: 'S'}, // in another group, but with a known parent
		{pid: 9, ppid: 13, pgrp: 9, state: 'S'},   // a child of 13, with a lower PID
		{pid: 20, ppid: 1, pgrp: 20, state: 'S'},
		{pid: 21, ppid: 20, pgrp: 21, state: 'S'}, // an unmarked child of 20
		{pid: 30, ppid: 1, pgrp: 30, state: 'S'},
		{pid: 31, ppid: 30, pgrp: 30, state: 'S'},
		{pid: 40, ppid: 1, pgrp: 40, state: 'Z'}, // a zombie, whose environment cannot be read
	}
	asked := map[int]bool{}
	var got []int
	for _, p := range descendants(all, 10, func(p process) bool {
		asked[p.pid] = true
		return p.pid == 20
	}) {
		got = append(got, p.pid)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]int{9, 10, 11, 12, 13, 20, 21}, got); diff != "" {
		t.Errorf("descent (-want +got):\n%s", diff)
	}
	if asked[40] {
		t.Error("a zombie was asked for its mark")
	}
}

func TestHasEntry(t *testing.T) {
	t.Parallel()
	tests := []struct {
		environ string
		want    bool
	}{
		{"A=1\x00TENDRIL_RUN=ab\x00B=2\x00", true},
		{"TENDRIL_RUN=ab", true},
		{"TENDRIL_RUN=abc\x00", false},
		{"XTENDRIL_RUN=ab\x00", false},
		{"X=TENDRIL_RUN=ab\x00", false},
		{"", false},
	}
	for _, tt := range tests {
		if got := hasEntry([]byte(tt.environ), "TENDRIL_RUN=ab"); got != tt.want {
			t.Errorf("hasEntry(%q) = %t", tt.environ, got)
		}
	}
}
