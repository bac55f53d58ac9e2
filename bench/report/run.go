package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const limit = 30 * time.Minute

type runner struct {
	o     *options
	facts map[string]string
	bin   string
}

func runAll(o *options, stop <-chan os.Signal) error {
	facts, err := facts(o.peers)
	if err != nil {
		return err
	}
	done, err := started(o, facts["commit"])
	if err != nil {
		return err
	}
	bin, err := os.MkdirTemp("", "tendril-report-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	r := runner{o, facts, bin}
	if err := r.compile(); err != nil {
		return err
	}

	var failed []error
	for round := 1; round <= o.rounds; round++ {
		for _, s := range suite {
			if !r.wants(s) || s.rounds > 0 && round > s.rounds || slices.Contains(done, run{s.name, round}) {
				continue
			}
			err := r.step(s, round, stop)
			if errors.Is(err, errStopped) {
				return errors.Join(append(failed, err)...)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

func (r *runner) wants(s step) bool { return s.scale == r.o.scale && r.o.only.MatchString(s.name) }

var errStopped = errors.New("stopped: run the same command to go on")

// started returns the completed runs in the file of results, or creates the file. Results of another commit are an
// error.
func started(o *options, commit string) ([]run, error) {
	data, err := os.ReadFile(o.results)
	if errors.Is(err, os.ErrNotExist) || !o.resume {
		return nil, os.WriteFile(o.results, nil, 0o644)
	}
	if err != nil {
		return nil, err
	}
	all, err := read(bytes.NewReader(data), o.results)
	if err != nil {
		return nil, err
	}

	if is := all.facts["commit"]; is != "" && is != commit {
		return nil, fmt.Errorf("%s has results of commit %s, not %s: use -new to replace them, or -draw to show them",
			o.results, is, commit)
	}
	var done []run
	for r := range all.runs {
		done = append(done, r)
	}
	return done, nil
}

func (r *runner) compile() error {
	built := map[string]bool{}
	for _, s := range suite {
		if built[s.pkg] || !r.wants(s) {
			continue
		}
		built[s.pkg] = true
		fmt.Fprintln(os.Stderr, "compiling", s.pkg)
		if out, err := exec.Command("go", "test", "-c", "-o", r.test(s.pkg), "./"+s.pkg).CombinedOutput(); err != nil {
			return fmt.Errorf("compiling the tests of %s: %w\n%s", s.pkg, err, out)
		}
	}

	if !built["bench"] {
		return nil
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(r.bin, "tendril"),
		"./cmd/tendril")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building tendril: %w\n%s", err, out)
	}
	return nil
}

func (r *runner) test(pkg string) string {
	return filepath.Join(r.bin, strings.ReplaceAll(pkg, "/", "-")+".test")
}

func (r *runner) step(s step, round int, stop <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, r.test(s.pkg), "-test.run=^$", "-test.bench="+s.bench,
		"-test.benchtime="+s.benchtime, "-test.timeout="+limit.String())
	cmd.Dir = s.pkg
	cmd.Stdout = &out
	cmd.Stderr = &out
	cmd.Env = append(os.Environ(), "TENDRIL_BENCH_PEERS="+r.o.peers,
		"TENDRIL_BENCH_BINARY="+filepath.Join(r.bin, "tendril"))
	if s.depth > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprint("TENDRIL_BENCH_DEPTH=", s.depth))
	}
	fmt.Fprintf(os.Stderr, "round %d of %d: %s", round, r.o.rounds, s.name)
	before, began := readProcessors(), time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	var err error
	select {
	case err = <-ended:
	case <-stop:
		cancel()
		<-ended
		return errStopped
	}

	own := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	others := readProcessors().othersSince(before, own)
	fmt.Fprintf(os.Stderr, ", %.0f s, %.0f s of processor time; other programs used %.1f %% of the processors\n",
		time.Since(began).Seconds(), own.Seconds(), others)
	if err != nil { // other programs' results are kept
		err = fmt.Errorf("step %s failed: %w\n%s", s.name, err, out.Bytes())
	}
	return errors.Join(err, r.record(s, round, others, out.Bytes()))
}

func (r *runner) record(s step, round int, others float64, output []byte) error {
	var b bytes.Buffer
	for _, key := range factKeys {
		fmt.Fprintf(&b, "%s: %s\n", key, r.facts[key])
	}
	fmt.Fprintf(&b, "step: %s\nround: %d\nothers: %.1f\ndepth: %d\n", s.name, round, others, s.depth)

	for line := range bytes.Lines(output) {
		measured := bytes.HasPrefix(line, []byte("Benchmark")) && len(bytes.Fields(line)) >= 4
		if measured || bytes.HasPrefix(line, []byte("pkg: ")) {
			b.Write(line)
		}
	}

	f, err := os.OpenFile(r.o.results, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	return errors.Join(err, f.Close())
}
