//go:build !race

package filter

import (
	"strings"
	"testing"
)

// The race detector has sync.Pool drop values now and then, and they are allocated again.

// TestMatchMakesNoValues: a message is looked at without an allocation but that of its body as bytes.
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
