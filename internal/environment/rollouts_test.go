package environment

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tendril/internal/bundle"
	"tendril/internal/instances"
	"tendril/internal/testing/testpeer"
)

func TestLatestVersionsAreThoseThatARollbackChoosesFrom(t *testing.T) {
	key, dir := filepath.Join(t.TempDir(), "key"), t.TempDir()
	for path, text := range map[string]string{key: "fleet-key-0123456789\n",
		filepath.Join(dir, "Procfile"): "web: ENVIRONMENT_TEST_APP=1 exec " + os.Args[0] + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server, flags := startRegistry(t, key)
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, flags, func(e *Environment) {
		e.opts.Bundle, e.opts.AppEnv = b, os.Environ()
		e.opts.Shared.Number = 1 // as if it had been started again with the version from the registry
	})
	var leases instances.Store
	eventually(t, "the instance's version is in the registry", func() bool {
		leases, err = r.rollouts.leases(t.Context())
		now, _ := r.desired.state.Current()
		return err == nil && now.App != nil
	})
	other, err := instances.NewDesired(r.cron.election.Name(), instances.FleetKey("fleet-key-0123456789"), "", func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Refresh(t.Context(), leases); err != nil {
		t.Fatal(err)
	}
	var deployed instances.AppVersion
	_, err = other.Change(t.Context(), leases, func(d *instances.Desired) (err error) {
		deployed, err = d.BeginRollout(d.App.Current, instances.Rollout{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	latest, err := r.changes.versions(t.Context(), true)
	if err != nil || len(latest) == 0 || latest[0].Number != deployed.Number {
		t.Errorf("the latest versions are %+v, %v, want version %d first", latest, err, deployed.Number)
	}
	if err := server.end(); err != nil {
		t.Error(err)
	}
	if latest, err := r.changes.versions(t.Context(), true); err == nil {
		t.Errorf("without a registry, %+v", latest)
	}
	if _, err := r.changes.versions(t.Context(), false); err != nil {
		t.Error(err)
	}
}

// startRegistry returns a queue server, and the flags of an environment that uses it.
func startRegistry(t *testing.T, key string) (server *running, flags map[string]string) {
	t.Helper()
	server = run(t, nil, func(e *Environment) { e.opts.QueuesOnly = true })
	makeDead(t, server, 0)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL_SQS": server.queues.endpoint, "AWS_ACCESS_KEY_ID": "test",
		"AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-west-1"} {
		t.Setenv(name, value)
	}
	return server, map[string]string{"queue-url": server.queues.endpoint + "/000000000000/jobs", "port": testpeer.FreePort(t),
		"allow-root": "true", "fleet-key-file": key}
}

func TestArchivesAreDeletedWhenARolloutEnds(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("fleet-key-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, flags := startRegistry(t, key)
	r := run(t, flags, nil) // without an app
	leases, err := r.rollouts.leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.desired.state.Change(t.Context(), leases, func(d *instances.Desired) error {
		d.App = &instances.App{Current: instances.AppVersion{Number: 8, Digest: "current"}, Earlier: []instances.AppVersion{
			{Number: 7, Digest: "again", Error: "not ready"}, {Number: 6, Digest: "unneeded", Error: "not ready"}}}
		_, err := d.BeginRollout(instances.AppVersion{Digest: "next"}, instances.Rollout{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	set := *r.settings.now()
	set.Versions = "s3://archives/versions" // not connected yet
	starting := *r.rollouts
	starting.life, starting.settings = newLifecycle(), &settings{}
	starting.settings.current.Store(&revision{all: &set})
	done, err := starting.abort(t.Context())
	if err != nil || !done.Aborted || !strings.Contains(r.log.String(), "deployment to all instances aborted") {
		t.Fatalf("the abort: %+v, %v", done, err)
	}

	_, err = r.desired.state.Change(t.Context(), leases, func(d *instances.Desired) error {
		_, err := d.BeginRollout(instances.AppVersion{Digest: "again"}, instances.Rollout{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	set.Versions = t.TempDir()
	archive := func(digest string) string { return filepath.Join(set.Versions, starting.archiveName(digest)) }
	for _, digest := range []string{"current", "next", "again", "unneeded"} {
		if err := os.WriteFile(archive(digest), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	starting.control = instances.NewRollouts(r.desired.state, &starting)
	running.Go(func() { starting.run(ctx, nil) })
	eventually(t, "the archive is deleted", func() bool {
		_, err := os.Stat(archive("unneeded"))
		return errors.Is(err, fs.ErrNotExist)
	})
	stop()
	running.Wait()
	for _, digest := range []string{"current", "next", "again"} {
		if _, err := os.Stat(archive(digest)); err != nil {
			t.Error(err)
		}
	}

	if err := os.WriteFile(archive("first"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	current, next := instances.AppVersion{Number: 8, Digest: "current"}, instances.AppVersion{Number: 9, Digest: "next"}
	starting.finished(t.Context(),
		&instances.App{Current: current, Next: &next, Earlier: []instances.AppVersion{{Number: 1, Digest: "first"}}},
		&instances.App{Current: next, Earlier: []instances.AppVersion{current}})
	if _, err := os.Stat(archive("first")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the archive of a version that left the list: %v", err)
	}
}

func TestArchivesAreDeletedOnceNoListedVersionNeedsThem(t *testing.T) {
	t.Parallel()
	version := func(n int, digest string) instances.AppVersion {
		return instances.AppVersion{Number: n, Digest: digest}
	}
	failed := func(n int, digest string) instances.AppVersion {
		return instances.AppVersion{Number: n, Digest: digest, Error: "not ready"}
	}
	next := version(9, "next")
	for name, c := range map[string]struct {
		before, now instances.App
		want        []string
	}{
		"a failed version is kept for another attempt": {
			instances.App{Current: version(8, "current"), Next: &next},
			instances.App{Current: version(8, "current"), Earlier: []instances.AppVersion{failed(9, "next")}}, nil},
		"and deleted after the next rollout": {
			instances.App{Current: version(8, "current"), Next: &next, Earlier: []instances.AppVersion{failed(7, "failed")}},
			instances.App{Current: next, Earlier: []instances.AppVersion{version(8, "current"), failed(7, "failed")}}, []string{"failed"}},
		"a version that falls off the list": {
			instances.App{Current: version(8, "current"), Next: &next, Earlier: []instances.AppVersion{failed(7, "failed"), version(1, "first")}},
			instances.App{Current: version(8, "current"), Earlier: []instances.AppVersion{failed(9, "next"), failed(7, "failed")}},
			[]string{"failed", "first"}},
		"the same archive in two versions": {
			instances.App{Current: version(8, "next"), Next: &next, Earlier: []instances.AppVersion{failed(7, "next")}},
			instances.App{Current: next, Earlier: []instances.AppVersion{version(8, "next")}}, nil},
	} {
		got := unneededDigests(&c.before, &c.now)
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v are deleted, want %v", name, got, c.want)
		}
	}
}
