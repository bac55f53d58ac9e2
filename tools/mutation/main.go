package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) error {
	root, err := filepath.Abs("..") // go run -C tools changes to the folder tools
	if err != nil {
		return err
	}
	if len(names) > 0 && names[0] == "-specification" {
		return trySpecification(ctx, root, names[1:], os.Stdout)
	}
	chosen := cores
	if len(names) > 0 {
		chosen = slices.DeleteFunc(slices.Clone(cores), func(c core) bool { return !slices.Contains(names, c.pkg) })
	}
	if len(chosen) < len(names) {
		return errors.New("unknown core: use the names of packages in tools/mutation/cores.go")
	}

	var results []result
	for _, c := range chosen {
		r, err := measure(ctx, root, c)
		if err != nil {
			return err
		}
		results = append(results, r)
	}

	if write(os.Stdout, results) {
		return errors.New("tests do not notice enough of the mutants")
	}
	return nil
}

func measure(ctx context.Context, root string, c core) (result, error) {
	start := time.Now()
	p, err := load(root, c)
	if err != nil {
		return result{}, err
	}
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	s, err := build(ctx, p, c, dir)
	if err != nil {
		return result{}, err
	}

	outcomes := make([]outcome, len(p.mutants))
	for i, m := range p.mutants {
		if outcomes[i], err = s.judge(ctx, m); err != nil {
			return result{}, err
		}
		if outcomes[i] != killed {
			fmt.Fprintf(os.Stderr, "%s: mutant %d of %d %s: %s\n", c.pkg, i+1, len(p.mutants), outcomes[i], m)
		}
	}

	r := c.result(p.mutants, outcomes)
	r.failing, r.took = s.failing, time.Since(start)
	fmt.Fprintf(os.Stderr, "%s: %d mutants, %.1f %% noticed, %.1f %% not executed, %s\n", c.pkg, len(p.mutants),
		r.efficacy(), r.unexecuted(), r.took.Round(time.Second))
	return r, nil
}
