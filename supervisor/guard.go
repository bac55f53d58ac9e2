package supervisor

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// guardScript notes the process groups that it is told of ("+ 123", "- 123").
// When its input ends because this process died, it kills those left. Signals
// that end a whole service at once must not end it before us.
const guardScript = `trap '' HUP INT TERM
echo ready
live=' '
while read -r verb group; do
  case $verb in
  +) live="$live$group " ;;
  -) live="${live%% "$group" *} ${live#* "$group" }" ;;
  esac
done
for group in $live; do
  kill -s KILL -- "-$group"
done`

// guard is a small shell beside us that outlives us by a moment: it kills the
// process groups that we leave behind when we are killed ourselves. The
// kernel's parent-death signal reaches only our own children, not theirs.
// A child is told to the guard right after it was started: in that moment the
// signal is all that protects.
//
// Where there is no shell there is no guard, and nothing else changes.
type guard struct {
	mu   sync.Mutex
	live map[int]bool
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// add puts the group that pid leads under guard.
func (g *guard) add(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.live == nil {
		g.live = map[int]bool{}
	}
	g.live[pid] = true
	if g.pipe != nil {
		if _, err := fmt.Fprintf(g.pipe, "+ %d\n", pid); err == nil {
			return
		}
		g.release()
	}
	g.start()
}

// remove must come before the leader is reaped: from then on its number may
// belong to somebody else.
func (g *guard) remove(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.live, pid)
	if g.pipe != nil {
		// A guard that is gone is replaced at the next add.
		_, _ = fmt.Fprintf(g.pipe, "- %d\n", pid)
	}
}

// close ends the guard.
func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release()
}

// start runs a guard that knows all live groups, and returns once it is armed.
// It has its own session, so that a terminal's Ctrl-C does not reach it.
func (g *guard) start() {
	cmd := &exec.Cmd{
		Path:        shellPath,
		Args:        []string{"sh", "-c", guardScript, "tendril-guard"},
		Env:         []string{},
		Dir:         "/",
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return
	}
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return
	}
	if err := cmd.Start(); err != nil {
		return
	}
	g.cmd, g.pipe = cmd, pipe
	_, _ = bufio.NewReader(ready).ReadString('\n')
	for pid := range g.live {
		_, _ = fmt.Fprintf(pipe, "+ %d\n", pid)
	}
}

// release closes the guard's input, which ends it, and reaps it.
func (g *guard) release() {
	if g.cmd == nil {
		return
	}
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
	g.cmd, g.pipe = nil, nil
}
