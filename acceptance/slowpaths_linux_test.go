package acceptance

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"tendril/internal/testing/testpeer"
)

func TestDeletedQueueIsReported(t *testing.T) {
	t.Parallel()
	resume(t)
	app := newRecorder(t, time.Millisecond)
	_, served := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off")
	c := client(served.Endpoint)
	url := createQueue(t, c, "jobs", nil)
	p, _ := start(t, "up", "--name", "jobs", "--data-dir", t.TempDir(), "--queue-url", url, "--target", app.URL,
		"--console", "off", "--wait-time", "1s")
	sendMany(t, c, url, 20)
	app.waitDone(t, 20)
	// A message that is not yet deleted would change the exit status.
	isEmpty, until := empty(t, c, url), time.Now().Add(time.Minute)
	for !isEmpty(nil) {
		if time.Now().After(until) {
			t.Fatal("the queue did not become empty")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if _, err := c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}); err != nil {
		t.Fatal(err)
	}
	deleted := time.Now()
	p.await(t, "a receive failed", func(e event) bool { return e.Msg == "receiving failed" })
	reported := time.Since(deleted)
	if reported > 30*time.Second {
		t.Errorf("the deleted queue was reported after %s", reported)
	}
	time.Sleep(time.Second)
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	report(t, "1 queue deleted while it was used: reported after %s, 0 crashes", reported.Round(100*time.Millisecond))
}

func TestProxyThatGivesUp(t *testing.T) {
	t.Parallel()
	resume(t)
	const work, patience = 1500 * time.Millisecond, 300 * time.Millisecond
	messages := testpeer.Size(5, 50)
	app := newRecorder(t, work)
	var gaveUp atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Aws-Sqsd-Receive-Count") != "1" {
			app.serve(w, r)
			return
		}
		go app.serve(httptest.NewRecorder(), r.WithContext(t.Context())) // continues after the proxy's response
		time.Sleep(patience)
		gaveUp.Add(1)
		w.WriteHeader(http.StatusGatewayTimeout)
	}))
	t.Cleanup(proxy.Close)
	dir := t.TempDir()
	p, started := start(t, "up", "--data-dir", dir, "--listen", "127.0.0.1:0", "--console", "off", "--name", "jobs",
		"--target", proxy.URL, "--http-connections", "50", "--error-visibility-timeout", "6")
	sendMany(t, client(started.Endpoint), started.QueueURL, messages)
	app.waitDone(t, messages)
	awaitQuiet(t, started)
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	checkLedger(t, dir, int64(messages))
	if n := int(gaveUp.Load()); n != messages || app.repeats() != messages || app.most > messages {
		t.Errorf("the proxy gave up on %d of %d messages, %d were posted again, most at once %d: none should overlap", n,
			messages, app.repeats(), app.most)
	}
	report(t, "a proxy gave up on %d attempts while the app worked on: lost 0, each posted once more, overlapping 0",
		messages)
}

func TestSlowDiskRepeatsNothing(t *testing.T) {
	long(t)
	t.Parallel()
	resume(t)
	strace := testpeer.Program(t, "strace")
	messages := testpeer.Size(10, 200)
	app := newRecorder(t, 10*time.Second)
	dir, trace := t.TempDir(), t.TempDir()+"/trace"
	cmd := exec.Command(strace, "-D", "-f", "-qq", "-o", trace, "-e", "trace=fsync,fdatasync", "-e",
		"inject=fsync,fdatasync:delay_exit=500000", program(t).Path, "up", "--data-dir", dir, "--listen", "127.0.0.1:0",
		"--console", "off", "--name", "jobs", "--target", app.URL, "--http-connections", "10", "--visibility-timeout", "8")
	p := launchCommand(t, cmd)
	select {
	case <-p.exited:
		t.Skipf("NOT TESTED with a slow disk: strace: %s", p.stderr)
	case <-time.After(time.Second):
	}
	started := p.await(t, "it started", func(e event) bool { return e.Msg == "started" })
	sendMany(t, client(started.Endpoint), started.QueueURL, messages)
	app.waitDone(t, messages)
	awaitQuiet(t, started)
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	checkLedger(t, dir, int64(messages))
	if n := app.repeats(); n > 0 {
		t.Errorf("%d messages were posted again", n)
	}
	syncs := newLines(t, trace).count()
	if info, err := os.Stat(trace); err != nil || info.Size() == 0 || syncs < 5 {
		t.Errorf("%d syncs were slow: nothing was shown", syncs)
	}
	report(t, "%d messages with %d syncs that took half a second longer: lost 0, worked on again 0", messages, syncs)
}
