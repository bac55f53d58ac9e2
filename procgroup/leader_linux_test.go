package procgroup

import "testing"

func TestInGroup(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]bool{
		"7 (sh) S 1 42 42 0":             true,
		"7 (a b) R (c) S 1 42 42 0":      true,
		"7 (sh) Z 1 42 42 0":             false,
		"7 (sh) X 1 42 42 0":             false,
		"7 (sh) S 1 421 42 0":            false,
		"7 (x) S 1 42) S 1 7 7 0":        false,
		"7 (sh) S":                       false,
		"":                               false,
		"42 (sh) T 1 42 1 0 -1 4194304 ": true,
	} {
		if got := inGroup([]byte(stat), 42); got != want {
			t.Errorf("%q: %v, want %v", stat, got, want)
		}
	}
}
