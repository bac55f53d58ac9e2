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
	// reapDelay lets a burst of ends become one look.
	reapDelay = 20 * time.Millisecond
	// reapAgain is when to look again where a zombie had to be left.
	reapAgain = time.Second
)

// reaper reaps orphans: processes whose parent ended before them and that the
// system gave to us, as it does to process 1. Nobody else will ever ask how
// they ended. nil reaps nothing.
//
// A child that this program itself started, here or anywhere else, is never
// taken from whoever waits for it: Go holds a handle (pidfd) on each from its
// birth to its wait, and an orphan has none.
type reaper struct {
	signals chan os.Signal
	stop    chan struct{}
	gone    sync.WaitGroup
}

// newReaper returns a running reaper.
func newReaper() *reaper {
	r := &reaper{signals: make(chan os.Signal, 1), stop: make(chan struct{})}
	signal.Notify(r.signals, syscall.SIGCHLD)
	r.gone.Go(r.loop)
	return r
}

func (r *reaper) loop() {
	next := time.After(0) // there may be some from before
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

// close ends the reaper after a last look.
func (r *reaper) close() {
	if r == nil {
		return
	}
	signal.Stop(r.signals)
	close(r.stop)
	r.gone.Wait()
	reapOrphans()
}

// reapOrphans reaps the zombies among our children that nobody waits for, and
// reports whether it left some.
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
		// Where the system knows no handles one cannot tell: orphans stay.
		return false
	}

	for _, pid := range zombies {
		if awaited[pid] {
			left = true
			continue
		}
		// A child that was waited for meanwhile is not a child any more.
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
	return left
}

// awaitedChildren returns the processes on which this program holds a handle.
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

// handledProcess reads from a /proc/self/fdinfo/N which process the handle is of.
func handledProcess(fdinfo string) (pid int, ok bool) {
	for line := range strings.Lines(fdinfo) {
		if value, found := strings.CutPrefix(line, "Pid:"); found {
			pid, err := strconv.Atoi(strings.TrimSpace(value))
			return pid, err == nil && pid > 0
		}
	}
	return 0, false
}
