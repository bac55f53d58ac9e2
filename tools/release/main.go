package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

type release struct {
	root    string
	out     string
	work    string
	version string
	time    time.Time
	targets []target
	binary  map[target]string
}

type target struct{ os, arch string }

func (t target) String() string { return t.os + "_" + t.arch }

var allTargets = []target{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "release:", err)
		}
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	out := flags.String("out", "", "folder of the release; must be empty or absent (default: dist in the repository)")
	snapshot := flags.Bool("snapshot", false, "build a commit without a tag, or with changes, for a trial")
	names := flags.String("targets", "", "systems, as linux/amd64,linux/arm64 (default: all)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	targets, err := parseTargets(*names)
	if err != nil {
		return err
	}
	r := &release{targets: targets, binary: map[target]string{}}
	if r.root, err = output(ctx, "", nil, "git", "rev-parse", "--show-toplevel"); err != nil {
		return err
	}
	if r.version, r.time, err = versionOf(ctx, r.root, *snapshot); err != nil {
		return err
	}
	r.out = cmp.Or(*out, filepath.Join(r.root, "dist"))
	if entries, err := os.ReadDir(r.out); err == nil && len(entries) > 0 {
		return fmt.Errorf("folder %s is not empty: delete it, or choose another with -out", r.out)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "tendril-release"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()

	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"binaries", r.build},
		{"completions and man pages", r.writeExtras},
		{"archives", r.writeArchives},
		{"packages", r.writePackages},
		{"image", r.writeImage},
		{"bill of materials", r.writeSBOM},
		{"checksums", r.writeSums},
	} {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("%-26s %s\n", step.name, time.Since(began).Round(100*time.Millisecond))
	}

	fmt.Printf("tendril %s is in %s\n", r.version, r.out)
	return nil
}

func parseTargets(names string) ([]target, error) {
	if names == "" {
		return allTargets, nil
	}

	var targets []target
	for name := range strings.SplitSeq(names, ",") {
		system, arch, _ := strings.Cut(name, "/")
		if t := (target{system, arch}); slices.Contains(allTargets, t) {
			targets = append(targets, t)
			continue
		}
		return nil, fmt.Errorf("there is no target %q: use linux/amd64, linux/arm64, darwin/amd64 or darwin/arm64", name)
	}
	return targets, nil
}

// Only Linux targets have packages and images.
func (r *release) linux() []target {
	return slices.DeleteFunc(slices.Clone(r.targets), func(t target) bool { return t.os != "linux" })
}

func here() target { return target{runtime.GOOS, runtime.GOARCH} }
