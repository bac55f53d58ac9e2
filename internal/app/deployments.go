package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/api"
)

const keptDeployments = 20

type deployments struct {
	mu    sync.Mutex
	all   []*api.Deployment // oldest first
	abort context.CancelCauseFunc
	over  chan struct{}
}

// d.mu must be held.
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

func (d *deployments) setAbort(abort context.CancelCauseFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.abort = abort
}

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
			last.Error = reasonOf(err)
			last.Aborted = isAbortion(state, err)
		}
		close(d.over)
	})
}

// An abort after the switch only skips hooks.
func isAbortion(state string, err error) bool {
	return state == api.DeployRolledBack && errors.Is(err, errAborted)
}

func reasonOf(err error) string { return strings.TrimPrefix(err.Error(), errRolledBack.Error()+": ") }

func (d *deployments) abortCurrent(ctx context.Context) (api.Deployment, error) {
	d.mu.Lock()
	last := d.last()
	abort := d.abort
	ended := d.over
	if last == nil || last.Over() {
		d.mu.Unlock()
		return api.Deployment{}, &api.Error{Status: http.StatusConflict, Message: "no deployment is in progress",
			Hint: "'tendril versions' lists the deployed versions"}
	}
	d.mu.Unlock()

	abort(fmt.Errorf("%w by %s", errAborted, deployedBy(ctx)))
	select {
	case <-ended:
	case <-ctx.Done():
		return api.Deployment{}, ctx.Err()
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if last.State != api.DeployRolledBack {
		return *last, &api.Error{Status: http.StatusConflict, Message: last.To + " is already serving",
			Hint: "'tendril rollback' goes back to " + last.From}
	}
	return *last, nil
}

func (d *deployments) newestFirst() (list []api.Deployment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range slices.Backward(d.all) {
		list = append(list, *one)
	}
	return list
}
