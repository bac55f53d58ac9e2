package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func TestG2DeletedNameIsFreeAfterAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, &Options{Logger: quiet().Logger})
		create(t, b, "q", nil)
		if err := b.DeleteQueue(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		wantError(t, b.CreateQueue(t.Context(), "q", nil, nil), queue.CodeQueueDeletedRecently,
			"You must wait 60 seconds after deleting a queue before you can create another with the same name.")
		time.Sleep(time.Second)
		create(t, b, "q", nil)
	})
}

func TestC5AgeInADeadLetterQueueIsTheTimeThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		create(t, b, "dead", nil)
		work := create(t, b, "work", map[string]string{"VisibilityTimeout": "1", "RedrivePolicy": policy(b, "dead", 1)})
		send(t, work, body("x")...)
		time.Sleep(time.Hour)
		one(t, work)
		time.Sleep(2 * time.Second)
		if got := take(t, work, 1); len(got) != 0 {
			t.Fatalf("received %s", texts(got))
		}
		time.Sleep(time.Minute)
		if age, err := b.OldestAge("dead"); age != time.Minute || err != nil {
			t.Errorf("the oldest message is %s old, %v; want a minute", age, err)
		}
	})
}
