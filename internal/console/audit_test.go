package console

import (
	"context"
	"slices"
	"testing"
)

// TestActsHaveWords: a log on a terminal says what was done, not which request did it.
func TestActsHaveWords(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"POST /api/v1/login": true}
	for _, rt := range routes(&Options{}, context.Background()) {
		known[rt.pattern] = true
		if (rt.kind.acts() || rt.kind == bodies) && actTexts[rt.pattern] == "" {
			t.Errorf("%s is not in actTexts: say what it does, such as \"queue paused\"", rt.pattern)
		}
	}
	for pattern := range actTexts {
		if !known[pattern] {
			t.Errorf("%s is in actTexts, and no route", pattern)
		}
	}
	a := Act{Method: "POST", Path: "/x", Text: "message retried", Subject: "m1", Who: "owner"}
	if attrs := a.attributes(); !slices.Equal(attrs[len(attrs)-4:], []any{"act", "message retried", "message_id", "m1"}) {
		t.Errorf("%v", attrs)
	}
}
