package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const largest = 45_000_000

// TENDRIL_RELEASE=all builds all targets.
func TestReleaseIsReproducible(t *testing.T) {
	t.Parallel()
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	args := []string{"-snapshot", "-out"}
	targets := "linux/" + here().arch
	if os.Getenv("TENDRIL_RELEASE") == "all" {
		targets = ""
	}
	for _, out := range []string{one, two} {
		if err := run(t.Context(), append(args, out, "-targets", targets)); err != nil {
			t.Fatal(err)
		}
	}
	names := fileNames(t, one)
	if again := fileNames(t, two); !slices.Equal(names, again) {
		t.Fatalf("%q, and the second time %q", names, again)
	}
	for _, name := range names {
		if !bytes.Equal(read(t, one, name), read(t, two, name)) {
			t.Errorf("%s differs the second time", name)
		}
	}
	lookInto(t, one, names)
}

func lookInto(t *testing.T, out string, names []string) {
	looks := map[string]func(*testing.T, string){".tar.gz": lookIntoArchive, ".deb": lookIntoDeb, ".rpm": lookIntoRPM,
		"_oci.tar": lookIntoImage, ".cdx.json": lookIntoSBOM, "SHA256SUMS": checkSums}
	seen := map[string]int{}
	for _, name := range names {
		for suffix, look := range looks {
			if strings.HasSuffix(name, suffix) {
				seen[suffix]++
				t.Run(name, func(t *testing.T) { look(t, filepath.Join(out, name)) })
			}
		}
	}
	if len(seen) != len(looks) {
		t.Errorf("the release has only %q", names)
	}
}

func lookIntoArchive(t *testing.T, path string) {
	archive, err := gzip.NewReader(bytes.NewReader(read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	found := untar(t, archive)
	folder := strings.TrimSuffix(filepath.Base(path), ".tar.gz")
	for _, name := range []string{"tendril", "LICENSE", "README.md", "completions/tendril.bash", "completions/tendril.fish",
		"completions/tendril.powershell", "completions/tendril.zsh", "man/tendril.1", "man/tendril-up.1"} {
		if len(found[folder+"/"+name]) == 0 {
			t.Errorf("the archive has no %s", name)
		}
	}
	binary := found[folder+"/tendril"]
	if len(binary) > largest {
		t.Errorf("the binary has %d bytes, more than %d", len(binary), largest)
	}
	if !strings.Contains(folder, here().String()) {
		return
	}
	program := filepath.Join(t.TempDir(), "tendril")
	if err := os.WriteFile(program, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	version, err := exec.Command(program, "version").Output()
	if want := strings.Split(folder, "_")[1]; err != nil || !strings.Contains(string(version), want) {
		t.Errorf("the binary says %q, %v; want version %s", version, err, want)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range info.Settings {
		if s.Key == "CGO_ENABLED" && s.Value != "0" || s.Key == "-trimpath" && s.Value != "true" {
			t.Errorf("built with %s=%s", s.Key, s.Value)
		}
	}
}

func lookIntoDeb(t *testing.T, path string) {
	program, err := exec.LookPath("dpkg-deb")
	if err != nil {
		t.Skip("dpkg-deb is not installed")
	}
	list, err := exec.Command(program, "--contents", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, list)
	}
	for _, want := range []string{"-rwxr-xr-x root/root", "./usr/bin/tendril", "./usr/lib/systemd/system/tendril.service",
		"-rw------- root/root", "./etc/tendril/tendril.env", "./usr/share/man/man1/tendril-up.1.gz",
		"./usr/share/bash-completion/completions/tendril", "./usr/lib/sysusers.d/tendril.conf"} {
		if !strings.Contains(string(list), want) {
			t.Errorf("the package has no %s:\n%s", want, list)
		}
	}
	fields, err := exec.Command(program, "--field", path, "Package", "Architecture").CombinedOutput()
	if err != nil || !strings.Contains(string(fields), "Package: tendril\n") {
		t.Errorf("%v\n%s", err, fields)
	}
}

func lookIntoRPM(t *testing.T, path string) {
	if data := read(t, path); !bytes.HasPrefix(data, []byte{0xed, 0xab, 0xee, 0xdb}) || !bytes.Contains(data, []byte("tendril")) {
		t.Error("this is not an rpm of tendril")
	}
}

func lookIntoImage(t *testing.T, path string) {
	folder := t.TempDir()
	for name, data := range untar(t, bytes.NewReader(read(t, path))) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755),
			os.WriteFile(filepath.Join(folder, name), data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	outer, err := index.IndexManifest()
	if err != nil || len(outer.Manifests) != 1 {
		t.Fatalf("%+v, %v", outer, err)
	}
	inner, err := index.ImageIndex(outer.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := inner.IndexManifest()
	if err != nil || len(manifest.Manifests) == 0 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	for _, m := range manifest.Manifests {
		image, err := inner.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != m.Platform.Architecture || config.Config.User != "65532:65532" ||
			config.Config.StopSignal != "SIGTERM" || config.Created.IsZero() {
			t.Errorf("the image is described as %+v, %v", config, err)
		}
	}
}

func lookIntoSBOM(t *testing.T, path string) {
	var bom struct {
		BOMFormat  string
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(read(t, path), &bom); err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(bom.Components, func(c struct{ Name, Version string }) bool { return c.Name == name })
	}
	for _, name := range []string{"std", "github.com/spf13/cobra", "modernc.org/sqlite", "htmx/htmx.min.js"} {
		if !has(name) {
			t.Errorf("the bill has no %s", name)
		}
	}
	if bom.BOMFormat != "CycloneDX" || has("github.com/goreleaser/nfpm/v2") {
		t.Errorf("format %q, or modules of the tools", bom.BOMFormat)
	}
}

func checkSums(t *testing.T, path string) {
	cmd := exec.Command("sha256sum", "--check", "--strict", filepath.Base(path))
	cmd.Dir = filepath.Dir(path)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, tag         string
		changed, snapshot bool
		want, wantErr     string
	}{
		{"a tag", "v1.2.3", false, false, "1.2.3", ""},
		{"a candidate", "v1.2.3-rc.1", false, false, "1.2.3-rc.1", ""},
		{"no tag", "", false, false, "", "has no tag: tag it as v1.2.3, or build with -snapshot"},
		{"another tag", "latest", false, false, "", `tag "latest" is not a version: use one like v1.2.3`},
		{"changes", "v1.2.3", true, false, "", "the tree has changes: commit them, or build with -snapshot"},
		{"a snapshot", "", false, true, "0.0.0-snapshot.20260102030405.", ""},
		{"a snapshot of changes", "v1.2.3", true, true, ".changed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			git := func(args ...string) {
				environment := []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a",
					"GIT_COMMITTER_EMAIL=a@b", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z", "GIT_CONFIG_GLOBAL=/dev/null"}
				if _, err := output(t.Context(), root, environment, "git", args...); err != nil {
					t.Fatal(err)
				}
			}
			git("init", "-q")
			git("commit", "-q", "--allow-empty", "-m", "x")
			if c.tag != "" {
				git("tag", c.tag)
			}
			if c.changed {
				if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, at, err := versionOf(t.Context(), root, c.snapshot)
			switch {
			case c.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Errorf("got %q, %v", got, err)
				}
			case err != nil || !strings.Contains(got, c.want) || !at.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)):
				t.Errorf("got %q of %s, %v", got, at, err)
			}
		})
	}
}

func TestArgumentsOfRelease(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`there is no target "plan9/386"`: {"-targets", "linux/amd64,plan9/386"},
		"is not empty":                   {"-snapshot", "-out", full},
	} {
		if err := run(context.Background(), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

func fileNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		names = append(names, file.Name())
	}
	return names
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func untar(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if found[header.Name], err = io.ReadAll(archive); err != nil {
				t.Fatal(err)
			}
		}
	}
}
