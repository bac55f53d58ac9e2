// Command coverage runs the tests of every package and prints which share of its statements they execute:
//
//	go run -C tools ./coverage                   every package, sorted by the share
//	go run -C tools ./coverage ./health ./limit  these packages
//
// It fails when a test fails, or when a package is below 85 %. Some packages need the foreign servers that .ci/run
// installs. What a built command or an example executes as a process of its own does not count; packages to which that
// happens are listed with their reason in exceptions.go.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
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
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, packages []string, w io.Writer) error {
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	test := exec.CommandContext(ctx, "go", append([]string{"test", "-cover", "-timeout", "30m"}, packages...)...)
	test.Dir = ".." // go run -C tools starts it in tools
	out, err := test.CombinedOutput()
	if err != nil {
		_, _ = w.Write(failing(out))
		return fmt.Errorf("go test: %w", err)
	}
	shares, err := parse(out)
	if err != nil {
		return err
	}
	if low := write(w, shares); len(low) > 0 {
		return fmt.Errorf("below %d %%: %s; test what they do, or give the reason in tools/coverage/exceptions.go",
			least, strings.Join(low, ", "))
	}
	return nil
}

// failing leaves the lines of packages that passed out of what go test printed.
func failing(out []byte) []byte {
	var kept [][]byte
	for line := range bytes.Lines(out) {
		if !bytes.Contains(line, []byte("coverage: ")) {
			kept = append(kept, line)
		}
	}
	return bytes.Join(kept, nil)
}

// line is what go test prints of a package with statements, with or without test files.
var line = regexp.MustCompile(`^(?:ok)?\s+tendril/(\S+)\s.*coverage: ([0-9.]+)% of statements`)

func parse(out []byte) ([]share, error) {
	var shares []share
	for text := range strings.Lines(string(out)) {
		found := line.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		percent, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", text, err)
		}
		shares = append(shares, share{found[1], percent})
	}
	if len(shares) == 0 {
		return nil, errors.New("go test printed no coverage")
	}
	slices.SortFunc(shares, func(a, b share) int {
		return cmp.Or(cmp.Compare(a.percent, b.percent), cmp.Compare(a.pkg, b.pkg))
	})
	return shares, nil
}

// write prints the table and returns the packages that are below the bound.
func write(w io.Writer, shares []share) (low []string) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "package\tstatements\t")
	for _, s := range shares {
		fmt.Fprintf(table, "%s\t%.1f %%\t%s\n", s.pkg, s.percent, exceptions[s.pkg])
		if s.percent < least && exceptions[s.pkg] == "" {
			low = append(low, s.pkg)
		}
	}
	_ = table.Flush()
	return low
}
