package api

import (
	"context"
	"testing"
)

// emptyAnswers leaves every answer at its zero value, like a server that responds with {}.
type emptyAnswers struct{}

func (emptyAnswers) Answer(context.Context, *Request, any) error { return nil }

func TestLastOutcomeReturnsAnAnswerWithoutAMessageID(t *testing.T) {
	t.Parallel()
	c := NewClient(Instance{}, emptyAnswers{})
	if d, err := c.LastOutcome(t.Context(), "m1"); err != nil || d != (Delivery{}) {
		t.Errorf("LastOutcome = %+v, %v", d, err)
	}
}
