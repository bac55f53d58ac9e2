package broker

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func TestRemovedMessagesAreReportedWithTheirCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type callerKey struct{}
		var mu sync.Mutex
		var got []Removal
		b := openTest(t, &Options{NoWaits: true, Events: &Events{Removed: func(ctx context.Context, removed []Removal) {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range removed {
				if caller, _ := ctx.Value(callerKey{}).(string); (r.Cause == CauseDeleted || r.Cause == CauseMoved) != (caller == "person") {
					t.Errorf("%+v by %q", r, caller)
				}
				got = append(got, r)
			}
		}}})
		person := context.WithValue(t.Context(), callerKey{}, "person")
		create(t, b, "other", nil)
		q := create(t, b, "jobs", map[string]string{"MessageRetentionPeriod": "60", "VisibilityTimeout": "1"})
		sent := send(t, q, body("done", "late", "deleted", "moved", "edited", "expires", "expires too")...)
		msgs := take(t, q, 2)
		remove(t, q, msgs[0].ReceiptHandle, msgs[0].ReceiptHandle)
		if errs := q.Expire(t.Context(), []string{msgs[1].ReceiptHandle}); errs != nil {
			t.Fatal(errs)
		}
		if n, err := b.DeleteMessages(person, "jobs", []string{sent[2].ID, sent[0].ID}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := b.Move(person, "jobs", "other", []string{sent[3].ID}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := b.DeleteMessages(person, "other", []string{sent[3].ID}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if _, err := q.Replace(person, sent[4].ID, "other", queue.Outgoing{Body: "new"}); err != nil {
			t.Fatal(err)
		}
		if of, known := b.SentTo(sent[3].ID); of != "jobs" || !known {
			t.Errorf("sent to %q, %v", of, known)
		}
		if of, known := b.SentTo("nonsense"); of != "" || known {
			t.Errorf("nonsense was sent to %q, %v", of, known)
		}
		take(t, q, 1)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n, err := b.PurgeQueue(person, "other"); n != 1 || err != nil {
			t.Fatal(n, err)
		}

		if err := b.DeleteQueue(person, "other"); err != nil {
			t.Fatal(err)
		}

		id := func(i int) string { return sent[i].ID }
		want := []Removal{{"jobs", id(0), CauseDone, "", 1}, {"jobs", id(1), CauseExpired, "", 1}, {"jobs", id(2), CauseDeleted, "", 0},
			{"jobs", id(3), CauseMoved, "other", 0}, {"other", id(3), CauseDeleted, "", 0}, {"jobs", id(4), CauseDeleted, "", 0},
			{"jobs", id(5), CauseExpired, "", 1}, {"jobs", id(6), CauseExpired, "", 0}, {"other", "", CauseDeleted, "", 0},
			{"other", "", CauseDeleted, "", 0}}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	})
}

func TestDeadLettersAreReportedAsRemovedFromTheirQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []Removal
		b := openTest(t, &Options{Events: &Events{Removed: func(_ context.Context, removed []Removal) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, removed...)
		}}})
		create(t, b, "dead", nil)
		q := create(t, b, "jobs", map[string]string{"VisibilityTimeout": "1", "RedrivePolicy": policy(b, "dead", 1)})
		sent := send(t, q, body("refused", "fails")...)
		msgs := take(t, q, 2)
		if errs := q.DeadLetter(t.Context(), []queue.DeadLetter{{Message: &msgs[0]}}); errs != nil {
			t.Fatal(errs)
		}
		time.Sleep(2 * time.Second)
		take(t, q, 1)
		want := []Removal{{"jobs", sent[0].ID, CauseDeadLettered, "dead", 1}, {"jobs", sent[1].ID, CauseDeadLettered, "dead", 1}}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	})
}
