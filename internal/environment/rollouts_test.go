package environment

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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
	flags["versions"] = t.TempDir()
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
	unneeded := filepath.Join(flags["versions"], r.rollouts.archiveName("unneeded"))
	if err := os.WriteFile(unneeded, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var deployed instances.AppVersion
	_, err = other.Change(t.Context(), leases, func(d *instances.Desired) (err error) {
		app := *d.App
		app.Earlier = append(app.Earlier, instances.AppVersion{Digest: "unneeded", Error: "not ready"})
		d.App = &app
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
	eventually(t, "the leader deletes an archive that no version needs", func() bool { return !exists(unneeded) })
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

func TestArchivesAreDeletedDuringARollout(t *testing.T) {
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
	begin := func(digest string) {
		t.Helper()
		_, err := r.desired.state.Change(t.Context(), leases, func(d *instances.Desired) error {
			if d.App == nil {
				d.App = &instances.App{Current: instances.AppVersion{Number: 8, Digest: "current"}, Earlier: []instances.AppVersion{
					{Number: 7, Digest: "again", Error: "not ready"}, {Number: 6, Digest: "unneeded", Error: "not ready"}}}
			}
			_, err := d.BeginRollout(instances.AppVersion{Digest: digest}, instances.Rollout{})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	begin("next")
	set := *r.settings.now()
	set.Versions = "s3://archives/versions" // not connected yet
	starting := *r.rollouts
	starting.life, starting.settings = newLifecycle(), &settings{}
	starting.settings.current.Store(&revision{all: &set})
	done, err := starting.abort(t.Context())
	if err != nil || !done.Aborted || !strings.Contains(r.log.String(), "deployment to all instances aborted") {
		t.Fatalf("the abort: %+v, %v", done, err)
	}

	begin("again")
	set.Versions = t.TempDir()
	archive := func(digest string) string { return filepath.Join(set.Versions, starting.archiveName(digest)) }
	for _, digest := range []string{"current", "next", "again", "unneeded"} {
		if err := os.WriteFile(archive(digest), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now, _ := r.desired.state.Current()
	starting.deleteStoredArchives(t.Context(), now.App)
	for digest, want := range map[string]bool{"current": true, "next": false, "again": true, "unneeded": false} {
		if got := exists(archive(digest)); got != want {
			t.Errorf("the archive %s exists: %t", digest, got)
		}
	}
}

// The rollout may have deleted the archive that the deployment has just stored.
func TestDeploymentThatOutlastsARolloutIsRefused(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("fleet-key-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, flags := startRegistry(t, key)
	r := run(t, flags, nil)
	leases, err := r.rollouts.leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	change := func(alter func(*instances.Desired) error) {
		t.Helper()
		if _, err := r.desired.state.Change(t.Context(), leases, alter); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(d *instances.Desired) error {
		_, err := d.BeginRollout(instances.AppVersion{Digest: "other"}, instances.Rollout{})
		return err
	}
	change(begin) // the first version
	_, err = r.rollouts.beginRollout(t.Context(), func(*instances.AppVersion) (v instances.AppVersion, how instances.Rollout, err error) {
		change(begin)
		change(func(d *instances.Desired) error { return d.AbortRollout("aborted") })
		return instances.AppVersion{Digest: "stored"}, how, nil
	})
	if !errors.Is(err, errDeployedMeanwhile) {
		t.Errorf("the deployment ended with %v", err)
	}
	if now, _ := r.desired.state.Current(); now.App.Next != nil || now.App.Earlier[0].Digest != "other" {
		t.Errorf("the versions are %+v", now.App)
	}
}
