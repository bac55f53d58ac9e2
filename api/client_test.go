package api

import (
	"context"
	"testing"
)

// emptyTransport responds to each request with an empty object.
type emptyTransport struct{}

func (emptyTransport) Answer(context.Context, *Request, any) error { return nil }

func TestDeletionWithoutATaskIsAnError(t *testing.T) {
	t.Parallel()
	c := NewClient(Instance{Console: "127.0.0.1:9325"}, emptyTransport{})
	if task, err := c.DeleteMatching(t.Context(), "jobs-dead", Selection{Match: "x"}, 0, 0); err == nil {
		t.Errorf("the task is %+v", task)
	}
}
