package supervisor

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// One scan handles all exits within reapDelay.
	reapDelay = 20 * time.Millisecond
	reapAgain = time.Second
)

// reaper reaps orphans, which the kernel assigns to process 1, but never a child that tendril waits for: Go
// holds a pidfd of each such child. A nil reaper does nothing.
type reaper struct {
	signals chan os.Signal
	stop    chan struct{}
	gone    sync.WaitGroup
}

func newReaper() *reaper {
	r := &reaper{signals: make(chan os.Signal, 1), stop: make(chan struct{})}
	signal.Notify(r.signals, syscall.SIGCHLD)
	r.gone.Go(r.loop)
	return r
}

func (r *reaper) loop() {
	next := time.After(0) // for earlier orphans
	for {
		select {
		case <-r.signals:
			next = time.After(reapDelay)
		case <-next:
			next = nil
			if reapOrphans() {
				next = time.After(reapAgain)
			}
		case <-r.stop:
			return
		}
	}
}

func (r *reaper) close() {
	if r == nil {
		return
	}
	signal.Stop(r.signals)
	close(r.stop)
	r.gone.Wait()
	reapOrphans()
}

func reapOrphans() (left bool) {
	if !seesItself() {
		return false
	}

	var zombies []int
	for _, p := range processes() {
		if p.ppid == os.Getpid() && p.state == 'Z' {
			zombies = append(zombies, p.pid)
		}
	}
	if len(zombies) == 0 {
		return false
	}

	awaited := awaitedChildren()
	if len(awaited) == 0 {
		// Without pidfds, orphans cannot be distinguished from children.
		return false
	}

	for _, pid := range zombies {
		if awaited[pid] {
			left = true
			continue
		}
		// This fails if the child has been reaped in the meantime.
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
	return left
}

func awaitedChildren() map[int]bool {
	awaited := map[int]bool{}
	files, _ := os.ReadDir("/proc/self/fd")
	for _, file := range files {
		target, err := os.Readlink("/proc/self/fd/" + file.Name())
		if err != nil || !strings.Contains(target, "pidfd") {
			continue
		}
		text, err := os.ReadFile("/proc/self/fdinfo/" + file.Name())
		if pid, ok := handledProcess(string(text)); err == nil && ok {
			awaited[pid] = true
		}
	}
	return awaited
}

func handledProcess(fdinfo string) (pid int, ok bool) {
	for line := range strings.Lines(fdinfo) {
		if value, found := strings.CutPrefix(line, "Pid:"); found {
			pid, err := strconv.Atoi(strings.TrimSpace(value))
			return pid, err == nil && pid > 0
		}
	}
	return 0, false
}
