package inspect

import (
	"testing"

	"tendril/api"
)

func TestAnotherProgramIsRecognisedByItsFile(t *testing.T) {
	t.Parallel()
	this := api.ThisProgram()
	for name, c := range map[string]struct {
		theirs api.Program
		want   string
	}{
		"the same file":                  {this, ""},
		"the same file by another path":  {api.Program{Path: "/elsewhere/tendril", ID: this.ID}, ""},
		"a file that was replaced since": {api.Program{Path: this.Path, ID: "1:2:3"}, this.Path},
		"a version that does not say":    {api.Program{}, ""},
	} {
		if got := otherProgram(c.theirs); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
