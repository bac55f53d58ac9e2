package delivery

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/queue"
)

type takesMessages struct{ seen []queue.Message }

func (d *takesMessages) Deliver(_ context.Context, m *queue.Message) queue.Result {
	d.seen = append(d.seen, *m)
	return queue.Result{Outcome: queue.Done}
}

func (d *takesMessages) Probe(context.Context) error { return nil }

func TestReasonOfADeadLetterIsNotForTheApp(t *testing.T) {
	t.Parallel()
	own := []queue.Attribute{{Name: "a", Type: "String", Value: "1"}, {Name: "z", Type: "Number", Value: "2"}}
	back := queue.Message{ID: "m-1", Body: "b", Attributes: []queue.Attribute{own[0],
		{Name: queue.AttributeReason, Type: "String", Value: `{"reason":"HTTP 500"}`}, own[1]}}
	to := &takesMessages{}
	ForWorker(&Options{Target: to}).Deliver(t.Context(), &back)
	if diff := cmp.Diff(own, to.seen[0].Attributes); diff != "" || to.seen[0].Body != "b" || len(back.Attributes) != 3 {
		t.Errorf("delivered (-want +got)\n%s", diff)
	}
}
