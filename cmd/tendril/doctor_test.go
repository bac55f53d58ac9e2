package main

import (
	"testing"

	"tendril/internal/console"
)

func TestAnotherProgramIsRecognisedByItsFile(t *testing.T) {
	t.Parallel()
	this := console.ThisProgram()
	for name, c := range map[string]struct {
		theirs console.Program
		want   string
	}{
		"the same file":                  {this, ""},
		"the same file by another path":  {console.Program{Path: "/elsewhere/tendril", ID: this.ID}, ""},
		"a file that was replaced since": {console.Program{Path: this.Path, ID: "1:2:3"}, this.Path},
		"a version that does not say":    {console.Program{}, ""},
	} {
		if got := otherProgram(c.theirs); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
