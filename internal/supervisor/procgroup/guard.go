package procgroup

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// guardScript reads the starts and ends of runs ("+ 123:MARKER", "- 123:MARKER"). When the input ends, because
// tendril has died or called [Guard.Close], the script kills the remaining runs. It ignores signals to the whole
// service, because it must outlast tendril.
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
      # A process that is executing its program has no environment for a moment.
      found=$(grep -ls "` + MarkVariable + `=$marker" /proc/[0-9]*/environ)
      [ -n "$found" ] || [ "$try" = 1 ] || break
      for path in $found; do
        pid=${path#/proc/}
        kill -s KILL "${pid%%/*}"
      done
      sleep 0.1
    done ;;
  esac
done`

// MarkVariable is the environment variable with a run's marker.
const MarkVariable = "TENDRIL_RUN"

// Guard is a small shell process that kills tendril's descendants if tendril itself is killed; the kernel's
// parent-death signal reaches only direct children. Without a shell, there is no guard. The zero value is ready to use.
// It is safe for concurrent use.
type Guard struct {
	mu   sync.Mutex
	live map[string]bool
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// Add guards a run. pid is its leader, or 0 if the leader was reaped. marker identifies processes outside the leader's
// group: a control group's directory, the value of [MarkVariable], or "".
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

// Remove stops guarding a run. Call it before the leader is reaped, because the PID may be reused after that.
func (g *Guard) Remove(pid int, marker string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	run := runOf(pid, marker)
	if g.pipe != nil && g.live[run] {
		// If the guard has died, the next Add starts a new one.
		_, _ = fmt.Fprintln(g.pipe, "-", run)
	}
	delete(g.live, run)
}

func runOf(pid int, marker string) string { return fmt.Sprintf("%d:%s", pid, marker) }

// Close stops the guard, which first kills the runs that were not removed.
func (g *Guard) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release()
}

// Watch starts the guard if it is not running, so that the next Add is fast.
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

// PID returns the guard's process ID, or 0 without a guard.
func (g *Guard) PID() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd == nil {
		return 0
	}
	return g.cmd.Process.Pid
}

// The guard has its own session, so that Ctrl-C does not reach it.
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

func (g *Guard) release() {
	if g.cmd == nil {
		return
	}
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
	g.cmd, g.pipe = nil, nil
}
