package acceptance

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

// Each kill happens when a peer has acted but tendril does not know it yet; see "Moments of doubt" in
// docs/reliability.md.
func TestKilledAtEachWindow(t *testing.T) {
	t.Parallel()
	resume(t)
	kills := testpeer.Size(1, 50)
	app := newRecorder(t, 5*time.Millisecond)
	_, served := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off")
	c := client(served.Endpoint)
	url := createQueue(t, c, "jobs", nil)
	queue, target := newFaultProxy(t, served.Endpoint, 1), newFaultProxy(t, app.URL, 2)
	up := &server{name: "up", args: []string{"up", "--name", "jobs", "--data-dir", t.TempDir(), "--queue-url",
		queue.URL + "/000000000000/jobs", "--target", target.URL, "--console", "off", "--visibility-timeout", "5",
		"--wait-time", "1s", "--delete-linger", "0"}}
	up.start(t)
	hasMessage := func(answer []byte) bool { return bytes.Contains(answer, []byte(`"Body"`)) }
	any := func([]byte) bool { return true }
	var counts string
	for _, window := range []struct {
		name  string
		proxy *faultProxy
		plan  faultPlan
		now   func(answer []byte) bool
		works int
	}{
		{"received, not learned", queue, faultPlan{fault: lostAnswer, only: "ReceiveMessage"}, hasMessage, 1},
		{"received, not posted", target, faultPlan{fault: lostRequest}, any, 1},
		{"worked on, answer not read", target, faultPlan{fault: lostAnswer}, any, 2},
		{"answered, not deleted", queue, faultPlan{fault: lostRequest, only: "DeleteMessage"}, any, 2},
		{"deleted, not learned", queue, faultPlan{fault: lostAnswer, only: "DeleteMessage"}, any, 1},
	} {
		for range kills {
			before, total := app.repeats(), len(app.posts)
			killed := make(chan struct{})
			var once atomic.Bool
			window.plan.share = 1
			window.plan.then = func(answer []byte) bool {
				if !window.now(answer) || !once.CompareAndSwap(false, true) {
					return false
				}
				p, _ := up.process()
				p.kill()
				close(killed)
				return true
			}
			window.proxy.inject(window.plan)
			sendMany(t, c, url, 1)
			select {
			case <-killed:
			case <-time.After(time.Minute):
				t.Fatalf("%s: the moment did not come within a minute", window.name)
			}
			window.proxy.inject(faultPlan{})
			up.start(t)
			app.waitDone(t, total+1)
			awaitQuiet(t, event{Endpoint: served.Endpoint, QueueURL: url})
			if works := 1 + app.repeats() - before; works != window.works {
				t.Errorf("%s: the app worked on the message %d times, want %d", window.name, works, window.works)
			}
		}
		counts += fmt.Sprintf("%s: worked on %d times; ", window.name, window.works)
	}
	report(t, "%d kills at each of 5 moments: %slost 0", kills, counts)
}
