package app

import "testing"

// The workers' gates must open before ready is closed. Health is evaluated at that moment and would otherwise report
// an app that is not ready.
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
