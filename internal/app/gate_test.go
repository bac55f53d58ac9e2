package app

import "testing"

func TestGatesAreOpenWhenTheAppIsReady(t *testing.T) {
	t.Parallel()
	passed := 0
	g := &gate{ready: make(chan struct{})}
	g.pass = func(open bool, _ string) {
		if passed++; !open || g.wasReady() {
			t.Errorf("ready was announced before the gates changed, open %t", open)
		}
	}
	g.change(true, "")
	if passed != 1 || !g.wasReady() {
		t.Errorf("%d changes of the gates, ready %t", passed, g.wasReady())
	}
}
