//go:build !race

package filter

import (
	"strings"
	"testing"
)

// Only the copy of the body as bytes is allocated. With the race detector, sync.Pool drops values at random.
func TestMatchMakesNoValues(t *testing.T) {
	f := parse(t, `{"body": {"order": {"kind": ["refund", {"prefix": "ord"}]},
		"$or": [{"a": [1]}, {"n": [{"numeric": [">", 1]}]}]}}`)
	m := withBody(`{"order":{"id":"x","kind":"order"},"n":5,"text":"` + strings.Repeat("x", 200) + `"}`)
	if !f.Match(m) {
		t.Fatal("it does not match")
	}
	if n := testing.AllocsPerRun(100, func() { f.Match(m) }); n > 8 {
		t.Errorf("%v allocations", n)
	}
}
