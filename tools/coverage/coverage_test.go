package main

import (
	"slices"
	"strings"
	"testing"
)

func TestSharesAreSortedAndBounded(t *testing.T) {
	t.Parallel()
	shares, err := parse([]byte("ok  \ttendril/health\t0.031s\tcoverage: 97.1% of statements\n" +
		"ok  \ttendril/leader/leadertest\t(cached)\tcoverage: 85.0% of statements\n" +
		"\ttendril/queuetest\t\tcoverage: 0.0% of statements\n" +
		"ok  \ttendril\t1.1s\tcoverage: [no statements]\n?   \ttendril/empty\t[no test files]\n"))
	want := []share{{"queuetest", 0}, {"leader/leadertest", 85}, {"health", 97.1}}
	if err != nil || !slices.Equal(shares, want) {
		t.Fatalf("got %v, %v; want %v", shares, err, want)
	}
	var out strings.Builder
	if low := write(&out, []share{{"none", 84.9}, {"leader", 85}}); !slices.Equal(low, []string{"none"}) ||
		!strings.Contains(out.String(), "none     84.9 %") {
		t.Errorf("below the bound: %v\n%s", low, out.String())
	}
	if _, err := parse([]byte("FAIL\n")); err == nil {
		t.Error("an output without coverage is accepted")
	}
}
