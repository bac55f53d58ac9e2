package procgroup

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// guardScript notes the runs that it is told of ("+ 123:TIE", "- 123:TIE"): the
// process group and, after the colon, the folder of the control group or the
// mark in the environment. When its input ends because this process died, it
// kills those left. Signals that end a whole service at once must not end it
// before us.
const guardScript = `trap '' HUP INT TERM
echo ready
live=' '
while read -r verb run; do
  case $verb in
  +) live="$live$run " ;;
  -) live="${live%% "$run" *} ${live#* "$run" }" ;;
  esac
done
exec 2>/dev/null
for run in $live; do
  case $run in
  0:*) ;;
  *) kill -s KILL -- "-${run%%:*}" ;;
  esac
done
for run in $live; do
  marker=${run#*:}
  case $marker in
  /*)
    for try in 1 2 3 4 5 6 7 8 9 10; do
      echo 1 >"$marker/cgroup.kill" || while read -r pid; do kill -s KILL "$pid"; done <"$marker/cgroup.procs"
      find "$marker" -depth -type d -exec rmdir {} \;
      [ -d "$marker" ] || break
      sleep 0.1
    done ;;
  ?*)
    for try in 1 2 3 4 5; do
      found=$(grep -ls "` + MarkVariable + `=$marker" /proc/[0-9]*/environ)
      [ -n "$found" ] || break
      for path in $found; do
        pid=${path#/proc/}
        kill -s KILL "${pid%%/*}"
      done
    done ;;
  esac
done`

// MarkVariable is the environment variable by which a [Guard] finds what left its
// process group: a run's processes carry it with the run's marker.
const MarkVariable = "TENDRIL_RUN"

// Guard is a small shell beside us that outlives us by a moment: it kills what
// we leave behind when we are killed ourselves. The kernel's parent-death signal
// reaches only our own children, not theirs. A child is told to the guard right
// after it was started: in that moment the signal is all that protects.
//
// Where there is no shell there is no guard, and nothing else changes. The zero value
// is ready; its methods are safe for concurrent use.
type Guard struct {
	mu sync.Mutex
	// live holds each run: its process group and, after a colon, its marker.
	live map[string]bool
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// Add puts the run that pid leads under guard; 0 is a run whose leader has ended and was reaped. marker finds what leaves its group: the
// path of a control group's folder, or the value of [MarkVariable]; "" where nothing is
// looked for.
func (g *Guard) Add(pid int, marker string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.live == nil {
		g.live = map[string]bool{}
	}
	run := runOf(pid, marker)
	g.live[run] = true
	if g.pipe != nil {
		if _, err := fmt.Fprintln(g.pipe, "+", run); err == nil {
			return
		}
		g.release()
	}
	g.start()
}

// Remove must come before the leader is reaped: from then on its number may
// belong to somebody else.
func (g *Guard) Remove(pid int, marker string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	run := runOf(pid, marker)
	if g.pipe != nil && g.live[run] {
		// A guard that is gone is replaced at the next Add.
		_, _ = fmt.Fprintln(g.pipe, "-", run)
	}
	delete(g.live, run)
}

func runOf(pid int, marker string) string { return fmt.Sprintf("%d:%s", pid, marker) }

// Close ends the guard.
func (g *Guard) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release()
}

// Watch has a guard run that knows all runs so far, in the place of one that is gone,
// so that a run that is started next is without it for no longer than a line takes.
func (g *Guard) Watch() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe != nil {
		if _, err := fmt.Fprintln(g.pipe, "?"); err == nil {
			return
		}
		g.release()
	}
	g.start()
}

// PID returns the number of the guard's process; 0 when none runs.
func (g *Guard) PID() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd == nil {
		return 0
	}
	return g.cmd.Process.Pid
}

// start runs a guard that knows all live runs, and returns once it is armed.
// It has its own session, so that a terminal's Ctrl-C does not reach it.
func (g *Guard) start() {
	cmd := &exec.Cmd{
		Path:        "/bin/sh",
		Args:        []string{"sh", "-c", guardScript, "tendril-guard"},
		Env:         []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		Dir:         "/",
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	pipe, err := cmd.StdinPipe()
	ready, err2 := cmd.StdoutPipe()
	if err != nil || err2 != nil || cmd.Start() != nil {
		return
	}
	g.cmd, g.pipe = cmd, pipe
	_, _ = bufio.NewReader(ready).ReadString('\n')
	for run := range g.live {
		_, _ = fmt.Fprintln(pipe, "+", run)
	}
}

// release closes the guard's input, which ends it, and reaps it.
func (g *Guard) release() {
	if g.cmd == nil {
		return
	}
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
	g.cmd, g.pipe = nil, nil
}
