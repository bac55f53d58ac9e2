package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"tendril/queuetest"
)

func TestEachMessageIsPostedOnceAndDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(nil), &testApp{handle: done(10 * time.Millisecond)}, nil)
		r.send(500, "")
		after(5 * time.Second)
		r.place(queuetest.FakeDeleted, 500)
		for id, posts := range r.app.byID() {
			if len(posts) != 1 {
				t.Errorf("%s was posted %d times", id, len(posts))
			}
		}
		r.stop()
		c := r.w.Status().Counts
		t.Logf("%+v", c)
	})
}
