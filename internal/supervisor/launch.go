package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"tendril/internal/supervisor/procgroup"
)

type launchSpec struct {
	process *Process
	path    string
	argv    []string
	user    *identity
	limits  []rlimit
	out     *output
}

func launchSpecOf(p *Process, out *output) (*launchSpec, error) {
	if info, err := os.Stat(cmp.Or(p.Dir, ".")); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("cannot enter its working directory %s", p.Dir)
	}
	path, argv, err := commandOf(p)
	if err != nil {
		return nil, err
	}
	user, err := identityOf(p.User)
	if err != nil {
		return nil, err
	}
	limits, err := parseLimits(p.Limits)
	if err != nil {
		return nil, err
	}
	return &launchSpec{process: p, path: path, argv: argv, user: user, limits: limits, out: out}, nil
}

func (h *host) start(p *Process, out *output) (*child, error) {
	o, err := launchSpecOf(p, out)
	if err != nil {
		return nil, err
	}

	g, barrier, err := h.launch(o)
	if err != nil {
		return nil, o.startError(err)
	}

	h.guard.Add(g.PID(), g.tree.marker())
	if err = barrier.open(g.PID(), o.limits, o.user); err != nil {
		barrier.close()
		g.signal(syscall.SIGKILL)
		g.Await()
		g.reap()
		return nil, err
	}

	exited := make(chan struct{})
	go func() {
		defer close(exited)
		g.Await()
	}()

	return &child{
		pid: g.PID(), exited: exited, group: g,
		foreignListener: func(port int) (string, bool) { return foreignListenerOn(port, g.tree) },
		ports:           func() []int { return listeningPorts(g.tree) },
		owns:            g.tree.owns,
	}, nil
}

// launch uses a control group or, if it cannot create one, a mark in the environment. A detached process gets neither,
// so that its descendants can outlive tendril.
func (h *host) launch(o *launchSpec) (*osGroup, *startBarrier, error) {
	if o.process.Detached {
		return h.begin(o, &processTree{seen: map[processID]bool{}})
	}
	if k := newCgroupTree(h.cgroups); k != nil {
		if g, barrier, err := h.begin(o, k); err == nil {
			return g, barrier, nil
		}
		k.release()
	}
	return h.begin(o, newMarkedTree())
}

func (h *host) begin(o *launchSpec, k *processTree) (*osGroup, *startBarrier, error) {
	g := &osGroup{guard: &h.guard, tree: k}
	g.Cmd = &exec.Cmd{
		Path:        o.path,
		Args:        o.argv,
		Dir:         o.process.Dir,
		Env:         append([]string{}, slices.Concat(o.process.Env, o.user.environment(), k.environment())...),
		SysProcAttr: procgroup.Attributes(),
		WaitDelay:   cmp.Or(o.process.OutputWait, waitDelay),
	}

	g.Cmd.SysProcAttr.Credential = o.user.credential()
	k.attach(g.Cmd.SysProcAttr)

	if o.out != nil {
		stdout, stderr := o.out.stream("stdout"), o.out.stream("stderr")
		if o.process.OneOutput {
			stderr = stdout
		}
		g.Cmd.Stdout, g.Cmd.Stderr = stdout, stderr
		g.streams = []io.Closer{stdout, stderr}
	}

	barrier, err := newStartBarrier(g.Cmd, o.limits)
	if err != nil {
		return nil, nil, err
	}

	h.guard.Watch() // shortens the time until Add, in which the process is not guarded
	h.thread.Do(func() { err = g.Cmd.Start() })
	barrier.started()
	if err != nil {
		barrier.close()
		return nil, nil, err
	}
	k.born(g.PID())
	return g, barrier, nil
}

func (o *launchSpec) startError(err error) error {
	switch {
	case o.user.credential() == nil:
		return fmt.Errorf("running %s: %w", o.path, err)
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("running %s as %s: %w: only root can change the user: start this program as root, or as "+
			"that user without the user option", o.path, o.process.User, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("running %s as %s: %w: that user must be able to enter %s and to execute the program", o.path,
			o.process.User, err, cmp.Or(o.process.Dir, "the working directory"))
	default:
		return fmt.Errorf("running %s as %s: %w", o.path, o.process.User, err)
	}
}
