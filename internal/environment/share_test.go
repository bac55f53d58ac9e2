package environment

import (
	"archive/zip"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tendril/internal/bundle"
	"tendril/internal/testing/testpeer"
)

func zipped(t *testing.T, files map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.zip")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	for name, text := range files {
		header := &zip.FileHeader{Name: name}
		header.SetMode(0o755)
		file, err := w.CreateHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOnlyTheAppReadsItsBundle(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED that other users cannot read the app's bundle: this needs root")
	}
	public, err := os.MkdirTemp("", "environment")
	if err == nil {
		err = os.Chmod(public, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(public) })
	data := filepath.Join(public, "data")
	archive := zipped(t, map[string]string{
		"Procfile":                          "web: sleep 1000\nmailer: ./bin/mailer; sleep 1000\n",
		"bin/mailer":                        "#!/bin/sh\ncd bin && echo the mailer reads $(cat ../secret)\n",
		"secret":                            "a password",
		".platform/hooks/predeploy/make.sh": "#!/bin/sh\nmkdir made && echo made > made/file\n",
	})
	dir, err := bundle.UnpackVersion(data, archive, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(data, "versions", "20200101T000000.000Z", "shop")
	if err := errors.Join(os.MkdirAll(old, 0o755), os.WriteFile(filepath.Join(old, "secret"), nil, 0o644),
		os.Chmod(filepath.Dir(old), 0o755), os.Chmod(filepath.Join(data, "versions"), 0o755),
		os.Chmod(data, 0o711)); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	const app, other = 61011, 61012
	r := run(t, map[string]string{"data-dir": data, "queue": "jobs", "app-user": "61011:61011",
		"port": testpeer.FreePort(t)}, func(e *Environment) {
		e.opts.Bundle = b
		e.opts.AppEnv = []string{"PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + os.Getenv("XDG_STATE_HOME")}
	})
	eventually(t, "the mailer speaks", func() bool {
		return strings.Contains(r.log.String(), "the mailer reads a password")
	})
	mayRead := func(who uint32, path string) bool {
		cmd := exec.Command("cat", path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who, Gid: who}}
		return cmd.Run() == nil
	}
	deploying, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	deployed := make(chan error, 1)
	go func() {
		_, err := r.changes.DeployPath(deploying, archive)
		deployed <- err
	}()
	made := func() (versions []string) { // versions whose hook has run, except dir and old
		for _, path := range globbed(t, filepath.Join(data, "versions", "*", "*", "made", "file")) {
			if version := filepath.Dir(filepath.Dir(path)); version != dir && version != old {
				versions = append(versions, version)
			}
		}
		return versions
	}
	eventually(t, "the new version", func() bool { return len(made()) == 1 })
	next := made()[0]
	for path, want := range map[string]bool{
		filepath.Join(dir, "secret"): true, filepath.Join(dir, "made/file"): true,
		filepath.Join(next, "secret"): true, filepath.Join(old, "secret"): false,
	} {
		if mayRead(app, path) != want {
			t.Errorf("the app can read %s: %v", path, !want)
		}
		if mayRead(other, path) {
			t.Errorf("another user can read %s", path)
		}
	}
	giveUp()
	if err := <-deployed; err == nil {
		t.Error("an app that never listens was deployed")
	}
	if left := made(); len(left) != 0 {
		t.Errorf("the failed version left %q", left)
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

func globbed(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
