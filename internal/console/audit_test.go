package console

import (
	"slices"
	"testing"
)

func TestActsHaveWords(t *testing.T) {
	t.Parallel()
	for _, rt := range New(nil).routes() {
		if (rt.kind.acts() || rt.kind == bodies) != (rt.act != "") {
			t.Errorf("%s has the act %q: name it if the route acts or shows bodies, as in \"queue paused\"", rt.pattern, rt.act)
		}
	}
	a := Act{Method: "POST", Path: "/x", Text: "message retried", Subject: "m1", Who: "owner"}
	if attrs := a.logAttrs(); !slices.Equal(attrs[len(attrs)-4:], []any{"act", "message retried", "message_id", "m1"}) {
		t.Errorf("%v", attrs)
	}
}
