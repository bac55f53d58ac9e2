package environment

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestReceivingStopsWhileTheRegistryIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		unread, reads := errors.New("no answer"), 0
		reread := func() error { reads++; return unread }
		var r registryLoss
		step := func(what string, failing, limit time.Duration, changes, stopped bool) {
			t.Helper()
			if changed := r.update(failing, limit, reread); changed != changes || (r.text() != "") != stopped {
				t.Errorf("%s: changed %t, reason %q", what, changed, r.text())
			}
		}

		step("without the option", time.Hour, 0, false, false)
		step("before the limit", 59*time.Second, time.Minute, false, false)
		step("at the limit", time.Minute, time.Minute, true, true)
		if !strings.Contains(r.text(), "has not responded for 1m0s") {
			t.Errorf("the reason is %q", r.text())
		}
		step("later", time.Hour, time.Minute, false, true)
		step("an answer, but no desired state", 0, time.Minute, false, true)
		step("lost again", time.Second, time.Minute, false, true)
		unread = nil
		step("an answer with the desired state", 0, time.Minute, true, false)
		step("still answering", 0, time.Minute, false, false)
		if reads != 2 {
			t.Errorf("the desired state was read %d times, want 2", reads)
		}

		r.setMissing(errNoQueueServer)
		time.Sleep(59 * time.Second)
		r.setMissing(errNoQueueServer)
		step("not found for 59 s", 0, time.Minute, false, false)
		time.Sleep(time.Second)
		step("not found for a minute", 0, time.Minute, true, true)
		r.setMissing(nil)
		step("found", 0, time.Minute, true, false)

		step("stopped again", time.Minute, time.Minute, true, true)
		step("switched off", time.Minute, 0, true, false)
	})
}
