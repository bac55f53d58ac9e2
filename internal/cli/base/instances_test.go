package base

import (
	"bytes"
	"context"
	"testing"

	"tendril/api"
)

func TestInstanceWithoutDetailsIsAConflict(t *testing.T) {
	t.Parallel()
	chosen := []api.KnownInstance{{ID: "b", Name: "worker-b", NoDetails: "its console is off"}}
	answers := api.FromEach(t.Context(), &api.Client{}, chosen,
		func(context.Context, *api.Client) (string, error) { return "", nil })
	var printed bytes.Buffer
	err := PrintUnanswered(&CLI{Err: &printed}, answers)
	if ExitCode(err) != ExitConflict || err.Error() != "no details of this instance: its console is off" || printed.Len() > 0 {
		t.Errorf("exit %d: %v, printed %q", ExitCode(err), err, printed.String())
	}
}
