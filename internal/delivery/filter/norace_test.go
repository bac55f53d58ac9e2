//go:build !race

package filter

import (
	"strings"
	"testing"
)

// Only a copy of the body is allocated. The race detector makes sync.Pool drop values at random.
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
