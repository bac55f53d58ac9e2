package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"tendril/internal/bundle"
)

// CommandClaim is the right of this instance to run the leader_only commands of a version.
type CommandClaim interface {
	// Context is done when another instance may have taken the commands over, or with the context of the deployment.
	Context() context.Context
	// Finish ends the claim. done tells that the commands have run, so that no other instance runs them.
	Finish(ctx context.Context, done bool) error
}

// finishLimit bounds the end of a claim when the deployment is over.
const finishLimit = 15 * time.Second

// leaderCommands are the leader_only commands of one version, which one instance runs.
type leaderCommands struct {
	opts   *Options
	digest string // of the version
	left   int    // how many are yet to come
	asked  bool
	claim  CommandClaim // nil when another instance has run them, and before the first
}

// leaderCommandsOf prepares the leader_only commands among steps. The version is known to other instances by its
// files, as they are before the steps.
func (s *stepRunner) leaderCommandsOf(v version, steps []bundle.Step) (*leaderCommands, error) {
	l := &leaderCommands{opts: s.opts}
	for i := range steps {
		if steps[i].LeaderOnly {
			l.left++
		}
	}
	if l.left == 0 {
		return l, nil
	}
	digest, err := contentDigest(v.bundle.Dir)
	l.digest = digest
	return l, err
}

// run runs a step, or skips it where it is for one instance and another one has run it.
func (l *leaderCommands) run(ctx context.Context, step *bundle.Step, run func(context.Context) error) (err error) {
	if !step.LeaderOnly {
		return run(ctx)
	}
	if !l.asked {
		if l.claim, err = l.opts.ClaimCommands(ctx, l.digest); err != nil {
			return fmt.Errorf("%s:%d: %s is for one instance, and it is not known which: %w", step.File, step.Line,
				step.Name, err)
		}
		l.asked = true
	}
	if l.left--; l.claim == nil {
		l.opts.Log.Info("command skipped", "step", step.Name, "reason", "leader_only: another instance has run it")
		return nil
	}

	if err := run(l.claim.Context()); err != nil {
		return err
	}
	if cause := context.Cause(l.claim.Context()); cause != nil {
		return cause
	}
	if l.left > 0 {
		return nil
	}

	claim := l.claim
	l.claim = nil
	return claim.Finish(ctx, true)
}

// giveUp lets another instance run the commands, if they did not all run here.
func (l *leaderCommands) giveUp() {
	if l.claim == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), finishLimit)
	defer cancel()
	if err := l.claim.Finish(ctx, false); err != nil {
		l.opts.Log.Warn("claim on the leader_only commands not released", "err", err,
			"hint", "another instance runs them when the claim has expired")
	}
}

// contentDigest is the same for two folders with the same files: names, contents, links, and who may execute them.
// Folders that apps write to, and what steps write later, do not count.
func contentDigest(dir string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()

	all, files := sha256.New(), 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(writtenFolders(), d.Name()):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		if files++; files > maxFolderFiles {
			return fs.SkipAll
		}
		return digestFile(all, root, name, d)
	})
	if err != nil {
		return "", fmt.Errorf("reading the version: %w", err)
	}
	return hex.EncodeToString(all.Sum(nil)[:16]), nil
}

// digestFile adds a file to a digest. One that is gone meanwhile is left out.
func digestFile(all io.Writer, root *os.Root, name string, d fs.DirEntry) error {
	switch info, err := d.Info(); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() == fs.ModeSymlink:
		to, err := root.Readlink(name)
		fmt.Fprintf(all, "link %q %q\n", name, to)
		return err
	case info.Mode().IsRegular():
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		one := sha256.New()
		_, err = io.Copy(one, f)
		fmt.Fprintf(all, "file %q %t %x\n", name, info.Mode()&0o111 != 0, one.Sum(nil))
		return err
	}
	return nil
}
