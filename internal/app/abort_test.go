package app

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/api"
)

func TestADeploymentIsAbortedBeforeTheSwitchOnly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, state string
		ends        string
		refused     string
	}{
		{"none", "", "", "no deployment is in progress"},
		{"over", api.DeployDone, "", "no deployment is in progress"},
		{"preparing", api.DeployPreparing, api.DeployRolledBack, ""},
		{"starting", api.DeployStarting, api.DeployRolledBack, ""},
		{"switched meanwhile", api.DeployStarting, api.DeployDone, "version 2 is already serving"},
		{"the last hooks run", api.DeployFinishing, api.DeployFailed, "version 2 is already serving"},
	} {
		d := &deployments{over: make(chan struct{})}
		if tt.state != "" {
			d.all = []*api.Deployment{{State: tt.state, From: "version 1", To: "version 2"}}
		}
		d.abort = func(cause error) {
			if !errors.Is(cause, errAborted) {
				t.Errorf("%s: the deployment ends with %v", tt.name, cause)
			}
			d.end(tt.ends, cause)
		}
		got, err := d.abortCurrent(t.Context())
		refused := (*api.Error)(nil)
		switch {
		case tt.refused == "" && (err != nil || !got.Aborted || got.State != api.DeployRolledBack):
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		case tt.refused != "" && (!errors.As(err, &refused) || refused.Status != http.StatusConflict ||
			!strings.Contains(refused.Message, tt.refused) || refused.Hint == ""):
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestAnAbortEndsTheNewReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newFakeLauncher(t, nil)
		if err := m.start(t.Context(), versionOf(1, good), 1); err != nil {
			t.Fatal(err)
		}
		ctx, abort := context.WithCancelCause(t.Context())
		deployed := make(chan error)
		go func() { deployed <- m.deploy(ctx, versionOf(2, never)) }()
		time.Sleep(time.Second)
		abort(errAborted)
		if err := <-deployed; !errors.Is(err, errRolledBack) || !errors.Is(err, errAborted) ||
			errors.Is(err, context.Canceled) || s.replicas() != 1 {
			t.Errorf("the deployment: %v; %d replicas run", err, s.replicas())
		}
		if err := m.deploy(t.Context(), versionOf(3, good)); err != nil || m.current().number != 3 {
			t.Errorf("the next deployment: %v; version %d serves", err, m.current().number)
		}
		if err := m.stop(); err != nil {
			t.Error(err)
		}
	})
}
