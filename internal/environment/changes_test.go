package environment

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tendril/api"
	"tendril/internal/app"
)

func TestDeploymentWaitsBrieflyForAnotherChange(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		event  func(c *changes, cancel context.CancelFunc)
		want   error
		waited time.Duration
	}{
		"the other change ends":    {func(c *changes, _ context.CancelFunc) { c.changing <- struct{}{} }, nil, 0},
		"the environment stops":    {func(c *changes, _ context.CancelFunc) { c.life.beginDrain() }, app.ErrStopped, 0},
		"the caller gives up":      {func(_ *changes, cancel context.CancelFunc) { cancel() }, app.ErrBusy, 0},
		"the other change is long": {func(*changes, context.CancelFunc) {}, app.ErrBusy, deployWait},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &changes{opts: &Options{Logger: discard()}, life: newLifecycle(), programs: &programs{},
				changing: make(chan struct{}, 1)}
			close(c.life.started)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			start := time.Now()
			begun := false
			done := make(chan error)
			go func() {
				_, err := c.deploy(ctx, func() (r api.DeployResult, err error) { begun = true; return r, nil })
				done <- err
			}()
			synctest.Wait()
			tt.event(c, cancel)
			err := <-done
			if waited := time.Since(start); !errors.Is(err, tt.want) || begun != (tt.want == nil) || waited != tt.waited {
				t.Errorf("%s: begun %t, %v after %s", name, begun, err, waited)
			}
		})
	}
}
