package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var tagged = regexp.MustCompile(`^v(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)$`)

// versionOf returns the commit's version and time. A snapshot needs no tag; its version contains the commit.
func versionOf(ctx context.Context, root string, snapshot bool) (version string, at time.Time, err error) {
	seconds, err := output(ctx, root, nil, "git", "log", "-1", "--format=%ct %h")
	if err != nil {
		return "", time.Time{}, err
	}
	stamp, commit, _ := strings.Cut(seconds, " ")
	unix, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("reading the time of the commit: %w", err)
	}
	at = time.Unix(unix, 0).UTC()
	changed, err := output(ctx, root, nil, "git", "status", "--porcelain")
	if err != nil {
		return "", time.Time{}, err
	}

	if snapshot {
		version = "0.0.0-snapshot." + at.Format("20060102150405") + "." + commit
		if changed != "" {
			version += ".changed"
		}
		return version, at, nil
	}
	if changed != "" {
		return "", time.Time{}, errors.New("the tree has changes: commit them, or build with -snapshot")
	}
	tag, err := output(ctx, root, nil, "git", "describe", "--tags", "--exact-match")
	if err != nil {
		return "", time.Time{}, fmt.Errorf("commit %s has no tag: tag it as v1.2.3, or build with -snapshot", commit)
	}
	m := tagged.FindStringSubmatch(tag)
	if m == nil {
		return "", time.Time{}, fmt.Errorf("tag %q is not a version: use one like v1.2.3 or v1.2.3-rc.1", tag)
	}
	return m[1], at, nil
}

func (r *release) build(ctx context.Context) error {
	for _, t := range append([]target{here()}, r.targets...) {
		if r.binary[t] != "" {
			continue
		}
		path := filepath.Join(r.work, t.String(), "tendril")
		// This machine may have other default processor levels.
		environment := []string{"GOOS=" + t.os, "GOARCH=" + t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly",
			"GOEXPERIMENT=", "GOWORK=off"}
		if _, err := output(ctx, r.root, environment, "tools/release/build.sh", r.version, path); err != nil {
			return err
		}
		r.binary[t] = path
	}
	return nil
}

func (r *release) writeExtras(ctx context.Context) error {
	folder := filepath.Join(r.work, "completions")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}

	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		text, err := output(ctx, r.root, nil, r.binary[here()], "completion", shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "tendril."+shell), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}

	stamp := []string{"SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.time.Unix(), 10), "GOFLAGS=-mod=readonly"}
	_, err := output(ctx, r.root, stamp, "go", "run", "-buildvcs=false", "-tags", "man",
		"-ldflags", "-X main.version="+r.version, "./cmd/tendril", "man", filepath.Join(r.work, "man"))
	return err
}

func output(ctx context.Context, dir string, environment []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimRight(string(text), "\n"), nil
}
