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
	"time"

	"tendril/internal/bundle"
)

// CommandClaim is this instance's right to run a version's leader_only commands.
type CommandClaim interface {
	// Context is done when another instance may hold the claim or the deployment's context is done.
	Context() context.Context
	// Finish releases the claim. If done is true, other instances skip the commands.
	Finish(ctx context.Context, done bool) error
}

const finishLimit = 15 * time.Second

type leaderCommands struct {
	opts   *Options
	digest string
	left   int
	asked  bool
	claim  CommandClaim // nil if this instance does not hold it
}

// leaderCommandsOf must be called before steps change the files, which it hashes.
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

func (l *leaderCommands) run(ctx context.Context, step *bundle.Step, run func(context.Context) error) error {
	if !step.LeaderOnly {
		return run(ctx)
	}
	if !l.asked {
		claim, err := l.opts.ClaimCommands(ctx, l.digest)
		if err != nil {
			return fmt.Errorf("%s:%d: choosing the instance that runs %s: %w", step.File, step.Line, step.Name, err)
		}
		l.claim, l.asked = claim, true
	}

	l.left--
	if l.claim == nil {
		l.opts.Log.Info("command skipped", "step", step.Name, "reason", "leader_only: already run by another instance")
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

func (l *leaderCommands) giveUp() {
	if l.claim == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), finishLimit)
	defer cancel()
	if err := l.claim.Finish(ctx, false); err != nil {
		l.opts.Log.Warn("claim on the leader_only commands not released", "err", err,
			"hint", "another instance runs them once the claim has expired")
	}
}

func contentDigest(dir string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()

	digest := sha256.New()
	err = walkFiles(root.FS(), writtenFolders(), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return digestFile(digest, root, name, d)
	})
	if err != nil {
		return "", fmt.Errorf("reading the version: %w", err)
	}
	return hex.EncodeToString(digest.Sum(nil)[:16]), nil
}

func digestFile(digest io.Writer, root *os.Root, name string, d fs.DirEntry) error {
	switch info, err := d.Info(); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() == fs.ModeSymlink:
		to, err := root.Readlink(name)
		fmt.Fprintf(digest, "link %q %q\n", name, to)
		return err
	case info.Mode().IsRegular():
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		content := sha256.New()
		_, err = io.Copy(content, f)
		fmt.Fprintf(digest, "file %q %t %x\n", name, info.Mode()&0o111 != 0, content.Sum(nil))
		return err
	}
	return nil
}
