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
	spec, err := launchSpecOf(p, out)
	if err != nil {
		return nil, err
	}

	g, barrier, err := h.launch(spec)
	if err != nil {
		return nil, spec.startError(err)
	}

	h.guard.Add(g.PID(), g.tree.marker())
	if err = barrier.open(g.PID(), spec.limits, spec.user); err != nil {
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
func (h *host) launch(spec *launchSpec) (*osGroup, *startBarrier, error) {
	if spec.process.Detached {
		return h.launchIn(&processTree{seen: map[processID]bool{}}, spec)
	}
	if tree := newCgroupTree(h.cgroups); tree != nil {
		if g, barrier, err := h.launchIn(tree, spec); err == nil {
			return g, barrier, nil
		}
		tree.release()
	}
	return h.launchIn(newMarkedTree(), spec)
}

func (h *host) launchIn(tree *processTree, spec *launchSpec) (*osGroup, *startBarrier, error) {
	g := &osGroup{guard: &h.guard, tree: tree}
	g.Cmd = &exec.Cmd{
		Path: spec.path,
		Args: spec.argv,
		Dir:  spec.process.Dir,
		// A nil Env inherits tendril's.
		Env:         append([]string{}, slices.Concat(spec.process.Env, spec.user.environment(), tree.environment())...),
		SysProcAttr: procgroup.Attributes(),
		WaitDelay:   cmp.Or(spec.process.OutputWait, waitDelay),
	}

	g.Cmd.SysProcAttr.Credential = spec.user.credential()
	tree.attach(g.Cmd.SysProcAttr)

	if spec.out != nil {
		stdout, stderr := spec.out.stream("stdout"), spec.out.stream("stderr")
		if spec.process.OneOutput {
			stderr = stdout
		}
		g.Cmd.Stdout, g.Cmd.Stderr = stdout, stderr
		g.streams = []io.Closer{stdout, stderr}
	}

	barrier, err := newStartBarrier(g.Cmd, spec.limits)
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
	tree.born(g.PID())
	return g, barrier, nil
}

func (spec *launchSpec) startError(err error) error {
	switch {
	case spec.user.credential() == nil:
		return fmt.Errorf("running %s: %w", spec.path, err)
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("running %s as %s: %w: only root can change the user: start tendril as root, or as "+
			"that user without the user option", spec.path, spec.process.User, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("running %s as %s: %w: that user must be able to enter %s and to execute the program", spec.path,
			spec.process.User, err, cmp.Or(spec.process.Dir, "the working directory"))
	default:
		return fmt.Errorf("running %s as %s: %w", spec.path, spec.process.User, err)
	}
}
