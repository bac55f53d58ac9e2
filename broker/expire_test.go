package broker

import "testing"

func TestExpiredMessagesAreNotBookedAsDone(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := create(t, b, "work", map[string]string{"VisibilityTimeout": "0"})
	send(t, q, body("a", "b", "c", "d")...)
	msgs := take(t, q, 4)
	remove(t, q, msgs[0].ReceiptHandle)
	if errs := q.Expire(t.Context(), []string{msgs[1].ReceiptHandle, "nonsense"}); len(errs) != 2 || errs[0] != nil ||
		errs[1] == nil {
		t.Fatal(errs)
	}
	want := Ledger{Sent: 4, Done: 1, Expired: 1, Live: 2, Visible: 2}
	if l, _ := b.Ledger("work"); l != want {
		t.Errorf("got %+v, want %+v", l, want)
	}
	b = reopen(t, b)
	q = b.Queue("work")
	if errs := q.Expire(t.Context(), []string{msgs[2].ReceiptHandle}); errs != nil {
		t.Fatal(errs)
	}
	remove(t, q, msgs[3].ReceiptHandle)
	want = Ledger{Sent: 4, Done: 2, Expired: 2}
	if l, _ := b.Ledger("work"); l != want {
		t.Errorf("after the restart: got %+v, want %+v", l, want)
	}
}
