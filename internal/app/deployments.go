package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"tendril/api"
)

// keptDeployments is how many deployments are remembered.
const keptDeployments = 20

// deployments are the last ones since the start, and the way to end the one under way.
type deployments struct {
	mu  sync.Mutex
	all []*api.Deployment // the oldest first
	// abort ends the deployment under way with a cause as a failure would, and over is closed when it has ended.
	abort context.CancelCauseFunc
	over  chan struct{}
}

// last returns the deployment under way, or else the last one; nil before the first. It needs the lock.
func (d *deployments) last() *api.Deployment {
	if len(d.all) == 0 {
		return nil
	}
	return d.all[len(d.all)-1]
}

func (d *deployments) begin(old, v version, abort context.CancelCauseFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.abort = abort
	d.over = make(chan struct{})
	d.all = append(d.all,
		&api.Deployment{State: api.DeployPreparing, From: old.String(), To: v.String(), Since: time.Now()})
	d.all = d.all[max(len(d.all)-keptDeployments, 0):]
}

// setAbort changes what an abort of the deployment under way does.
func (d *deployments) setAbort(abort context.CancelCauseFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.abort = abort
}

// update changes the deployment under way, if there is one.
func (d *deployments) update(change func(last *api.Deployment)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last := d.last(); last != nil && !last.Over() {
		change(last)
	}
}

func (d *deployments) setState(state string) {
	d.update(func(last *api.Deployment) { last.State, last.Step = state, "" })
}

func (d *deployments) setStep(name string) {
	d.update(func(last *api.Deployment) { last.Step = name })
}

func (d *deployments) end(state string, err error) {
	d.update(func(last *api.Deployment) {
		last.State = state
		last.Ended = time.Now()
		if err != nil {
			last.Error = err.Error()
			last.Aborted = state == api.DeployRolledBack && errors.Is(err, errAborted)
		}
		close(d.over)
	})
}

// cancel ends the deployment under way as a failure would, and returns it when it is over: the previous version is
// still serving. The error is a [*api.Error] where none is under way, or where the new version is serving already:
// then only its last hooks were ended.
func (d *deployments) cancel(ctx context.Context) (api.Deployment, error) {
	d.mu.Lock()
	last, abort, over := d.last(), d.abort, d.over
	if last == nil || last.Over() {
		d.mu.Unlock()
		return api.Deployment{}, &api.Error{Status: http.StatusConflict, Message: "no deployment is in progress",
			Hint: "'tendril versions' lists what was deployed"}
	}
	d.mu.Unlock()

	abort(fmt.Errorf("%w by %s", errAborted, deployedBy(ctx)))
	select {
	case <-over:
	case <-ctx.Done():
		return api.Deployment{}, ctx.Err()
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if last.State != api.DeployRolledBack {
		return *last, &api.Error{Status: http.StatusConflict, Message: last.To + " is serving already",
			Hint: "'tendril rollback' goes back to " + last.From}
	}
	return *last, nil
}

// newestFirst returns copies of all.
func (d *deployments) newestFirst() (list []api.Deployment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range slices.Backward(d.all) {
		list = append(list, *one)
	}
	return list
}
