// Command coverage runs the tests of every package and prints which share of its statements they execute:
//
//	go run -C tools ./coverage                   every package
//	go run -C tools ./coverage ./internal/observe/health ./broker  these packages
//	go run -C tools ./coverage -profile /tmp/health.txt ./internal/observe/health && go tool cover -html /tmp/health.txt
//
// It prints a line for each package when its tests have run, with what has been counted by then, and at the end a table
// of all, sorted by the share. It fails when a test fails, or when a package is below 85 %. Some packages need the
// foreign servers that .ci/run installs.
//
// What the test binary of a package executes counts for that package, also in processes that it starts of itself:
// commands of scripts, apps, and what is to be killed. A process that is killed writes nothing. Packages that connect
// others are tested as they are used: users.go says which packages have those tests, and these count as well.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// least is the share of each package in percent.
const least = 85

// share is that of one package.
type share struct {
	pkg     string
	percent float64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	profile := flag.String("profile", "", "also write a profile to this `file`, for go tool cover")
	flag.Parse()
	if err := run(ctx, flag.Args(), *profile, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, patterns []string, profile string, w io.Writer) error {
	packages, err := list(ctx, patterns)
	if err != nil {
		return err
	}
	counts := counter{}
	var failed []string
	for _, pkg := range withUsers(packages) {
		start := time.Now()
		failure, err := counts.test(ctx, pkg)
		if err != nil {
			return err
		}
		if err := counts.writeProfile(profile); err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%.1f %%\t%s\n", pkg, counts.percent(pkg), time.Since(start).Round(time.Second))
		if failure != "" {
			fmt.Fprint(w, failure)
			failed = append(failed, pkg)
		}
	}
	var shares []share
	for _, pkg := range packages {
		shares = append(shares, share{pkg, counts.percent(pkg)})
	}
	low := write(w, shares)
	if len(failed) > 0 {
		return fmt.Errorf("tests fail: %s", strings.Join(failed, ", "))
	}
	if len(low) > 0 {
		return fmt.Errorf("below %d %%: %s; test what they do",
			least, strings.Join(low, ", "))
	}
	return nil
}

// write prints the table and returns the packages that are below the bound.
func write(w io.Writer, shares []share) (low []string) {
	slices.SortFunc(shares, func(a, b share) int {
		return cmp.Or(cmp.Compare(a.percent, b.percent), cmp.Compare(a.pkg, b.pkg))
	})
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "package\tstatements\t")
	for _, s := range shares {
		fmt.Fprintf(table, "%s\t%.1f %%\t\n", s.pkg, s.percent)
		if s.percent < least {
			low = append(low, s.pkg)
		}
	}
	_ = table.Flush()
	return low
}

var errNoPackages = errors.New("no package with statements: name folders, as in ./broker")
