package environment

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tendril/internal/bundle"
	"tendril/internal/observe/health"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

// If ENVIRONMENT_TEST_APP is set, TestMain runs an app in which each POST blocks until a GET of /finish.
func TestMain(m *testing.M) {
	if os.Getenv("ENVIRONMENT_TEST_APP") == "" {
		os.Exit(testpeer.Contained(m, "TENDRIL_REGISTRY_TOKEN=0123456789abcdef", "AWS_ACCESS_KEY_ID=test",
			"AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=us-east-1").Run())
	}
	finish := make(chan struct{})
	panic(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"),
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/finish" {
				close(finish)
			}
			<-finish
		})))
}

// Both previous versions are still draining when the hooks run and the next deployment starts.
func TestADeploymentEndsWhileTheOldVersionWorks(t *testing.T) {
	t.Parallel()
	dir, said, port := t.TempDir(), filepath.Join(t.TempDir(), "said"), testpeer.FreePort(t)
	for name, text := range map[string]string{
		"Procfile":                          "web: ENVIRONMENT_TEST_APP=1 exec " + os.Args[0] + "\n",
		".platform/hooks/postdeploy/say.sh": "#!/bin/sh\necho deployed >> " + said + "\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, map[string]string{"port": port, "queue": "jobs", "allow-root": "true"}, func(e *Environment) {
		e.opts.Bundle, e.opts.AppEnv = b, os.Environ()
	})
	sendOne(t, r, "work")
	eventually(t, "the message is in work", func() bool { return r.work.all[0].status().InWork > 0 })
	eventually(t, "the hook of the start", func() bool { // a later version would skip the hook
		text, err := os.ReadFile(said)
		return err == nil && string(text) == "deployed\n"
	})
	fail := func(n int) {
		for range n {
			r.observe.monitor.Delivered("jobs", health.Server, time.Second, health.Failure{})
		}
	}
	fail(20)
	for version := 2; version <= 3; version++ {
		if _, err := r.changes.DeployPath(t.Context(), dir); err != nil {
			t.Fatalf("deploying version %d: %v", version, err)
		}
	}
	if text, err := os.ReadFile(said); string(text) != "deployed\ndeployed\ndeployed\n" {
		t.Errorf("the hooks said %q, %v", text, err)
	}
	fail(10)
	eventually(t, "health that counts only the deliveries of the current version", func() bool {
		return strings.Contains(strings.Join(r.observe.monitor.Report().Causes, " "), "(10 of 10)")
	})
	if r.work.all[0].status().InWork != 1 {
		t.Error("the message is no longer in work")
	}
	// The app may be stopped before it responds, because its delivery is complete.
	if answer, err := http.Get("http://127.0.0.1:" + port + "/finish"); err == nil {
		answer.Body.Close()
	}
	eventually(t, "the message is done", func() bool { return r.work.all[0].status().InWork == 0 })
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

func sendOne(t *testing.T, r *running, body string) {
	t.Helper()
	if _, err := r.queues.broker.Queue("jobs").Send(t.Context(), []queue.Outgoing{{Body: body}}); err != nil {
		t.Fatal(err)
	}
}
