package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/supervisor"
)

// Restart restarts a process and returns its replacement's name. A serving replica drains once its replacement is
// ready. A helper stops first, because it must not run twice. The replica for quarantined messages only stops, because
// the next delivery starts it.
func (a *App) Restart(ctx context.Context, name string) (started string, err error) {
	if a.opts.stopping() {
		return "", ErrStopped
	}
	if found, err := a.quarantine.restart(name); found {
		return name, err
	}

	started, err = a.replicas.restart(ctx, name)
	var process *processError
	switch {
	case errors.Is(err, errNoProcess):
		return "", &api.Error{Status: http.StatusNotFound, Message: err.Error(), Hint: "'tendril status' lists them"}
	case errors.As(err, &process):
		return "", &api.Error{Status: http.StatusUnprocessableEntity, Message: err.Error(),
			Hint: "the previous process is still serving", Step: process.name, Output: process.output.lines()}
	}
	return started, err
}

// RestartAll restarts the serving version's processes one after the other, until the first error.
func (a *App) RestartAll(ctx context.Context) (restarted int, err error) {
	replicas, helpers := a.replicas.status()
	for _, p := range slices.Concat(replicas, helpers) {
		if _, err := a.Restart(ctx, p.Name); err != nil {
			return restarted, fmt.Errorf("restarting %s: %w", p.Name, err)
		}
		restarted++
	}
	return restarted, nil
}

var errNoProcess = errors.New("not found")

// restart returns once the new replica receives deliveries or the helper has started. It returns [ErrBusy] during
// another change, or if a deployment cancels the restart.
func (s *replicaSet) restart(ctx context.Context, name string) (started string, err error) {
	ctx, end, err := s.changes.begin(ctx, toScale)
	if err != nil {
		return "", err
	}
	defer end()

	old := s.now.Load()
	names, retired := replicaNames(old.replicas), replicaNames(s.draining())
	at := bundle.ProcessIndex(names, retired, name)
	switch {
	case at >= 0:
		name = names[at]
		started, err = s.replaceReplica(ctx, old, at)
	case slices.Contains(retired, name):
		return "", &api.Error{Status: http.StatusConflict, Message: "process " + strconv.Quote(name) +
			" is draining: it was replaced and stops after its deliveries", Hint: "restart one of " + strings.Join(names, ", ")}
	default:
		started = name
		err = restartHelper(ctx, old.helpers, name)
	}

	if err != nil && errors.Is(context.Cause(ctx), ErrBusy) {
		return "", ErrBusy
	}
	if err != nil {
		return "", err
	}
	s.opts.restarted()
	s.opts.log.Info("process restarted", "process", name, "started", started)
	return started, nil
}

func replicaNames(replicas []*replica) (names []string) {
	for _, r := range replicas {
		names = append(names, r.name())
	}
	return names
}

func (s *replicaSet) replaceReplica(ctx context.Context, old *serving, at int) (name string, err error) {
	added, err := s.launchReady(ctx, old.version, 1)
	if err != nil {
		return "", err
	}
	retired := old.replicas[at : at+1 : at+1]
	replicas := slices.Replace(slices.Clone(old.replicas), at, at+1, added...)
	s.now.Store(&serving{old.version, replicas, old.helpers})
	s.balancer.replace(retired, added)
	s.retiring.Go(func() { s.retireAll(retired, s.opts.drainTimeout()) })
	return added[0].name(), nil
}

func restartHelper(ctx context.Context, helpers processes, name string) error {
	if helpers == nil || !slices.ContainsFunc(helpers.Status(), func(p supervisor.Status) bool { return p.Name == name }) {
		return fmt.Errorf("process %s %w", strconv.Quote(name), errNoProcess)
	}
	return helpers.Restart(ctx, name)
}
