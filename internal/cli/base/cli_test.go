package base

import (
	"bytes"
	"strings"
	"testing"
)

func TestConfirm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typed    string
		tty, yes bool
		want     int
	}{
		{"", false, true, 0}, {"", false, false, ExitUsage}, {"jobs\n", true, false, 0}, {"jobs", true, false, 0},
		{"job\n", true, false, ExitFailed}, {"\n", true, false, ExitFailed}, {"", true, false, ExitFailed},
		{"yes\n", true, false, ExitFailed},
	} {
		var talk bytes.Buffer
		world := &CLI{In: strings.NewReader(c.typed), Err: &talk, TtyIn: c.tty}
		err := world.Confirm("remove all messages of jobs", "jobs", "--yes", c.yes)
		if got := ExitCode(err); got != c.want {
			t.Errorf("%+v: exit %d\n%s", c, got, &talk)
		}
		// An earlier question of the same command may have been confirmed.
		if c.want == ExitFailed && err.Error() != "not confirmed: the answer was not jobs" {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
