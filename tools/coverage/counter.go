package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/cover"
)

// module is the prefix of the packages.
const module = "tendril/"

// list returns the packages that have statements, without the prefix.
func list(ctx context.Context, patterns []string) ([]string, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	out, err := command(ctx, "list", append([]string{"-json=ImportPath,Dir,GoFiles"}, patterns...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []string
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading what go list printed: %w", err)
		}
		found, err := hasStatements(p.Dir, p.GoFiles)
		if err != nil {
			return nil, err
		}
		if found {
			packages = append(packages, strings.TrimPrefix(p.ImportPath, module))
		}
	}
	if len(packages) == 0 {
		return nil, errNoPackages
	}
	return packages, nil
}

func hasStatements(dir string, files []string) (bool, error) {
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && f.Body != nil && len(f.Body.List) > 0
		}) {
			return true, nil
		}
	}
	return false, nil
}

// block is a run of statements without a branch.
type block struct {
	file  string
	place cover.ProfileBlock // without its count
}

// counter says of each block of each package whether a test executed it.
type counter map[string]map[block]bool

// percent is the share of the statements of a package that were executed.
func (c counter) percent(pkg string) float64 {
	all, executed := 0, 0
	for b, done := range c[pkg] {
		all += b.place.NumStmt
		if done {
			executed += b.place.NumStmt
		}
	}
	if all == 0 {
		return 0 // without tests
	}
	return 100 * float64(executed) / float64(all)
}

// test runs the tests of a package and counts what they execute. It returns what failing tests printed.
func (c counter) test(ctx context.Context, pkg string) (failure string, err error) {
	dir, err := os.MkdirTemp("", "coverage-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	profile := filepath.Join(dir, "profile.txt")
	var counted []string
	for _, p := range countedBy(pkg) {
		counted = append(counted, "./"+p)
	}
	// go test sets GOCOVERDIR, so that processes which are this test binary too add to the profile.
	out, err := command(ctx, "test", "-count=1", "-timeout", "30m", "-coverpkg", strings.Join(counted, ","),
		"-coverprofile", profile, "./"+pkg).CombinedOutput()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed) && ctx.Err() == nil:
		failure = string(out)
	case err != nil:
		return "", err
	}
	return failure, c.read(profile)
}

// read adds a profile. A package without tests, or that does not compile, has none.
func (c counter) read(profile string) error {
	profiles, err := cover.ParseProfiles(profile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the profile: %w", err)
	}
	for _, p := range profiles {
		c.add(p)
	}
	return nil
}

func (c counter) add(p *cover.Profile) {
	pkg := strings.TrimPrefix(path.Dir(p.FileName), module)
	if c[pkg] == nil {
		c[pkg] = map[block]bool{}
	}
	for _, b := range p.Blocks {
		executed := b.Count > 0
		b.Count = 0
		key := block{p.FileName, b}
		c[pkg][key] = c[pkg][key] || executed
	}
}

// writeProfile writes what was counted until now, as go test does.
func (c counter) writeProfile(file string) error {
	if file == "" {
		return nil
	}
	lines := []string{}
	for _, blocks := range c {
		for b, executed := range blocks {
			count := 0
			if executed {
				count = 1
			}
			lines = append(lines, fmt.Sprintf("%s:%d.%d,%d.%d %d %d\n", b.file, b.place.StartLine, b.place.StartCol,
				b.place.EndLine, b.place.EndCol, b.place.NumStmt, count))
		}
	}
	slices.Sort(lines)
	return os.WriteFile(file, []byte("mode: set\n"+strings.Join(lines, "")), 0o600)
}

// command is one of go, at the root. go run -C tools starts this program in tools.
func command(ctx context.Context, verb string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", append([]string{verb}, args...)...)
	c.Dir = ".."
	return c
}
