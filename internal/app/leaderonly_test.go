package app

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tendril/internal/bundle"
)

type fakeClaim struct {
	ctx  context.Context
	ends []bool
}

func (f *fakeClaim) Context() context.Context { return f.ctx }

func (f *fakeClaim) Finish(_ context.Context, done bool) error {
	f.ends = append(f.ends, done)
	return nil
}

func TestLeaderOnlyCommandsRunWhereTheClaimIs(t *testing.T) {
	t.Parallel()
	lost, lose := context.WithCancelCause(t.Context())
	errLost, errAway, errStep := errors.New("lost"), errors.New("away"), errors.New("exit status 1")
	lose(errLost)
	granted := func() *fakeClaim { return &fakeClaim{ctx: t.Context()} }
	all, yes, no := []string{"a", "L1", "b", "L2", "c"}, []bool{true}, []bool{false}
	for name, c := range map[string]struct {
		claim  *fakeClaim // nil if another instance has run the commands
		refuse error
		fails  string
		ran    []string
		ends   []bool
		err    error
	}{
		"this instance":      {claim: granted(), ran: all, ends: yes},
		"another instance":   {ran: []string{"a", "b", "c"}},
		"the last one fails": {claim: granted(), fails: "L2", ran: all[:4], ends: no, err: errStep},
		"another step fails": {claim: granted(), fails: "b", ran: all[:3], ends: no, err: errStep},
		"before the claim":   {claim: granted(), fails: "a", ran: all[:1], err: errStep},
		"after the claim":    {claim: granted(), fails: "c", ran: all, ends: yes, err: errStep},
		"the claim is lost":  {claim: &fakeClaim{ctx: lost}, ran: all[:2], ends: no, err: errLost},
		"nobody can say":     {refuse: errAway, ran: all[:1], err: errAway},
	} {
		var ran []string
		asked := 0
		l := &leaderCommands{left: 2, digest: "v", opts: &Options{Log: slog.New(slog.DiscardHandler),
			ClaimCommands: func(_ context.Context, version string) (CommandClaim, error) {
				if asked++; version != "v" || c.claim == nil {
					return nil, c.refuse
				}
				return c.claim, c.refuse
			}}}
		var err error
		for _, step := range []bundle.Step{{Name: "a"}, {Name: "L1", CommandRules: bundle.CommandRules{LeaderOnly: true}},
			{Name: "b"}, {Name: "L2", CommandRules: bundle.CommandRules{LeaderOnly: true}}, {Name: "c"}} {
			err = l.run(t.Context(), &step, func(context.Context) error {
				if ran = append(ran, step.Name); step.Name == c.fails {
					return errStep
				}
				return nil
			})
			if err != nil {
				break
			}
		}
		l.giveUp()
		if !slices.Equal(ran, c.ran) || !errors.Is(err, c.err) || (err != nil) != (c.err != nil) || asked > 1 {
			t.Errorf("%s: ran %q, %v, asked %d times; want %q, %v", name, ran, err, asked, c.ran, c.err)
		}
		if c.claim != nil && !slices.Equal(c.claim.ends, c.ends) {
			t.Errorf("%s: the claim ended %v, want %v", name, c.claim.ends, c.ends)
		}
	}
}

func TestDigestOfAVersionFollowsItsContent(t *testing.T) {
	t.Parallel()
	make := func(files map[string]string, mode fs.FileMode) (dir, digest string) {
		dir = t.TempDir()
		for name, text := range files {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
				t.Fatal(err)
			}
		}
		digest, err := contentDigest(dir)
		if err != nil {
			t.Fatal(err)
		}
		return dir, digest
	}
	files := map[string]string{"Procfile": "web: a", "lib/a.py": "x"}
	dir, first := make(files, 0o644)
	if _, again := make(files, 0o644); again != first || len(first) != 32 {
		t.Errorf("the same files: %s and %s", first, again)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "log"), 0o755),
		os.WriteFile(filepath.Join(dir, "log", "x"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if again, err := contentDigest(dir); again != first || err != nil {
		t.Errorf("a log counts: %v", err)
	}
	if err := os.Symlink("lib/a.py", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	digests := []string{first}
	linked, err := contentDigest(dir)
	if err != nil {
		t.Fatal(err)
	}
	digests = append(digests, linked)
	for _, other := range []map[string]string{{"Procfile": "web: b", "lib/a.py": "x"},
		{"Procfile": "web: a", "lib/b.py": "x"}} {
		_, digest := make(other, 0o644)
		digests = append(digests, digest)
	}
	_, executable := make(files, 0o755)
	if digests = append(digests, executable); len(slices.Compact(slices.Sorted(slices.Values(digests)))) != len(digests) {
		t.Errorf("different versions have the same digest: %q", digests)
	}
}
