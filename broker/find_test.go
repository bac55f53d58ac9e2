package broker

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/queue"
)

func TestMessagesOfAllStatesAreFoundByTheStartOfTheirID(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	dead := create(t, b, "dead", nil)
	jobs := create(t, b, "jobs", map[string]string{"RedrivePolicy": policy(b, "dead", 9)})
	ids := map[string]string{}
	ids["dead"] = send(t, jobs, body("dead")...)[0].ID
	m := one(t, jobs)
	if errs := jobs.DeadLetter(t.Context(), []queue.DeadLetter{{Message: &m}}); errs != nil {
		t.Fatal(errs)
	}
	ids["in flight"] = send(t, jobs, body("in flight")...)[0].ID
	one(t, jobs)
	ids["delayed"] = send(t, jobs, queue.Outgoing{Body: "delayed", Delay: new(15 * time.Minute)})[0].ID
	ids["waiting"] = send(t, jobs, body("waiting")...)[0].ID
	gone := send(t, dead, body("gone")...)[0].ID
	if _, err := b.DeleteMessages(t.Context(), "dead", []string{gone}); err != nil {
		t.Fatal(err)
	}
	for name, id := range ids {
		found, whole, err := b.FindByID(t.Context(), strings.ToUpper(id[:13]), 2, time.Hour)
		if err != nil || !whole || len(found) != 1 || found[0].ID != id || found[0].Body != name {
			t.Errorf("%s: %+v, %t, %v", name, found, whole, err)
		}
	}
	if found, whole, err := b.FindByID(t.Context(), gone[:13], 2, time.Hour); err != nil || !whole || found != nil {
		t.Errorf("a deleted message: %+v, %t, %v", found, whole, err)
	}
	if found, whole, err := b.FindByID(t.Context(), "", 3, time.Hour); err != nil || !whole || len(found) != 3 {
		t.Errorf("at most three: %d, %t, %v", len(found), whole, err)
	}
	if found, whole, err := b.FindByID(t.Context(), ids["waiting"][:13], 2, -1); err != nil || whole || found != nil {
		t.Errorf("without time: %+v, %t, %v", found, whole, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := b.FindByID(ctx, "0000", 2, time.Hour); err == nil {
		t.Error("a canceled search goes on")
	}
}

func TestSmallQueuesAreSearchedFirst(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	want := []string{"b", "b", "e", "e", "c", "c", "c", "a", "a", "a", "a", "d", "d", "d", "d", "d"}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		create(t, b, name, nil)
	}
	for _, name := range want {
		send(t, b.Queue(name), body(name)...)
	}
	found, _, err := b.FindByID(t.Context(), "", len(want), time.Hour)
	var got []string
	for i := range found {
		got = append(got, found[i].Queue)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("searched %v, %v, want %v", got, err, want)
	}
}

func TestTheNewestOfManyMessagesIsFoundByTheStartOfItsID(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := create(t, b, "jobs", nil)
	sendMany(t, q, browseChunk+1, 0)
	newest := send(t, q, body("newest")...)[0].ID
	found, whole, err := b.FindByID(t.Context(), newest[:18], 2, time.Hour)
	if err != nil || !whole || len(found) != 1 || found[0].ID != newest {
		t.Errorf("%+v, %t, %v", found, whole, err)
	}
}
