package tasks

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tendril/broker"
	"tendril/internal/aws"
	"tendril/internal/cron/leader"
	"tendril/internal/cron/periodic"
	"tendril/internal/host/proof"
	"tendril/internal/registry"
	"tendril/internal/sqsapi"
	"tendril/queue"
)

type sharedRegistry struct {
	leases        leader.Store // nil if no leader can be elected
	runs          runRegistry
	pauses        PauseStore
	pauseInterval time.Duration
	// checked is closed once it is known whether the registry is available; it may be nil.
	checked <-chan struct{}
}

type runRegistry interface {
	periodic.Registry
	PauseStore
	// Known reports whether a run was enqueued with a message for path.
	Known(ctx context.Context, runID, path string) (bool, error)
}

// PauseStore stores pauses of tasks.
type PauseStore interface {
	// reason may be "".
	SetPaused(ctx context.Context, task, reason string, paused bool) error
	Paused(ctx context.Context) (map[string]string, error)
}

// RegistryOptions determine an environment's registry.
type RegistryOptions struct {
	Queue, QueueURL string
	// Broker contains the environment's first queue. It is nil, and SQS and Home are set, if Amazon SQS or another process
	// serves the queue.
	Broker *broker.Broker
	SQS    *aws.SQS
	Home   *aws.Queue
	// Token is the registry token. Insecure sends it even to a server that does not prove that it knows the token.
	Token    string
	Insecure bool
	// Local means that this is the only instance, so no leader is elected.
	Local bool
	// Table is a DynamoDB table's name, or "". Create creates a missing table with Tags.
	Table, Region string
	Create        bool
	Tags          map[string]string
	SDK           aws.LogFunc
}

// tablePauseInterval is longer, because reads of a table cost money.
const (
	pauseInterval      = 5 * time.Second
	tablePauseInterval = 30 * time.Second
)

// registryTimeout limits the wait for the queue's server, and at startup for a table.
const registryTimeout = time.Second

type registryFinder struct {
	opts RegistryOptions
	lead registry.Leadership
	log  *slog.Logger

	opening sync.Mutex
	found   atomic.Pointer[sharedRegistry] // nil before open, or without a registry
	// undecided means that the queue's server has not reported yet whether it has a registry.
	undecided atomic.Bool
	// refusal is a string, the reason that this instance cannot use the registry.
	refusal atomic.Value

	cleanup atomic.Pointer[func()] // may be nil
}

func (f *registryFinder) leaseName() string { return periodic.LeaseName(f.opts.Queue) }

func (f *registryFinder) open(ctx context.Context) (*sharedRegistry, error) {
	f.opening.Lock()
	defer f.opening.Unlock()
	if reg := f.found.Load(); reg != nil {
		return reg, nil
	}

	var reg *sharedRegistry
	switch {
	case f.opts.Broker != nil:
		store := f.opts.Broker.Registry()
		reg = newSharedRegistry(registry.NewLeases(store), registry.NewRuns(store, f.scope()), pauseInterval)
	case f.opts.Table != "":
		var err error
		if reg, err = f.openTable(ctx); err != nil {
			return nil, err
		}
	default:
		reg = f.openServed(ctx)
	}
	f.found.Store(reg)
	return reg, nil
}

func (f *registryFinder) absenceReason() string {
	if !f.undecided.Load() {
		return "no leader can be elected: add --registry-table NAME (and --registry-create to create it), or " +
			"--leader local when this is the only instance"
	}
	if err := f.refused(); err != nil {
		return err.Error()
	}
	return "unknown whether the queue server has a registry; tendril retries"
}

// refused returns why this instance cannot use the registry, or nil if the server has not responded.
func (f *registryFinder) refused() error {
	if refusal, _ := f.refusal.Load().(string); refusal != "" {
		return errors.New(refusal)
	}
	return nil
}

func (f *registryFinder) close() {
	if end := f.cleanup.Swap(nil); end != nil {
		(*end)()
	}
}

func newSharedRegistry(leases leader.Store, runs runRegistry, interval time.Duration) *sharedRegistry {
	return &sharedRegistry{leases: leases, runs: runs, pauses: runs, pauseInterval: interval}
}

func (f *registryFinder) scope() registry.Scope {
	scope := registry.Scope{Name: f.leaseName(), Lease: f.leaseName()}
	if f.opts.Local {
		scope.Lease = ""
	}
	return scope
}

// openServed returns nil until the queue's server responds, and without a registry unless this is the only instance.
func (f *registryFinder) openServed(ctx context.Context) *sharedRegistry {
	if endpoint := registryEndpoint(f.opts.QueueURL); endpoint != "" {
		client, err := f.findServed(ctx, endpoint)
		f.undecided.Store(err != nil)
		if err != nil {
			f.refusal.Store(refusalText(err))
			return nil
		}
		if client != nil {
			return newSharedRegistry(client, client, pauseInterval)
		}
	}

	if !f.opts.Local {
		return nil
	}
	return &sharedRegistry{runs: f.sentRuns(registry.NewMemory())}
}

// registryEndpoint returns "" for AWS, which has no registry.
func registryEndpoint(queueURL string) string {
	u, err := url.Parse(queueURL)
	if err != nil || strings.Contains(u.Hostname(), ".amazonaws.") || strings.HasSuffix(u.Hostname(), ".api.aws") {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func (f *registryFinder) findServed(ctx context.Context, endpoint string) (*sqsapi.RegistryClient, error) {
	ctx, cancel := context.WithTimeout(ctx, registryTimeout)
	defer cancel()
	as := sqsapi.Identity{Token: f.opts.Token, Insecure: f.opts.Insecure}
	if f.opts.SQS != nil {
		as.Sign = f.opts.SQS.Sign
	}
	return findRegistry(ctx, endpoint, f.scope(), as)
}

// findRegistry returns nil if the server has no registry. It tries again without the token if the server does not prove
// that it knows the token: other SQS servers have no registry, and a tendril that checks signatures needs no token.
func findRegistry(ctx context.Context, endpoint string, scope registry.Scope, as sqsapi.Identity) (*sqsapi.RegistryClient, error) {
	client, err := probe(ctx, endpoint, scope, as)
	if unproved := (*proof.Error)(nil); !errors.As(err, &unproved) {
		return client, err
	}

	as.Token = ""
	bare, bareErr := probe(ctx, endpoint, scope, as)
	switch {
	case bareErr == nil && (bare == nil || bare.Signs()):
		return bare, nil
	case bareErr != nil && !errors.Is(bareErr, queue.ErrDenied):
		return nil, bareErr
	}
	return nil, err
}

func probe(ctx context.Context, endpoint string, scope registry.Scope, as sqsapi.Identity) (*sqsapi.RegistryClient, error) {
	client := sqsapi.NewRegistryClient(endpoint, scope, as, nil)
	found, err := client.Probe(ctx)
	if err != nil || !found {
		return nil, err
	}
	return client, nil
}

func refusalText(err error) string {
	unproved := (*proof.Error)(nil)
	switch {
	case errors.As(err, &unproved):
		return err.Error()
	case errors.Is(err, queue.ErrDenied):
		return "the queue server's registry requires its token: set TENDRIL_REGISTRY_TOKEN to the " +
			"content of the file " + TokenFile + " in its data directory"
	}
	return ""
}

// openTable does not wait for the table: tasks need it, but deliveries do not.
func (f *registryFinder) openTable(ctx context.Context) (*sharedRegistry, error) {
	table, err := aws.OpenTable(ctx, f.opts.Table, &aws.Options{Region: f.opts.Region, Log: f.opts.SDK})
	if err != nil {
		return nil, err
	}

	checking, cancel := context.WithTimeout(context.Background(), time.Minute)
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		defer cancel()
		prepareTable(checking, table, &f.opts, f.log)
	}()

	end := func() {
		cancel()
		<-checked
		table.Close()
	}
	f.cleanup.Store(&end)

	reg := newSharedRegistry(registry.NewLeases(table), f.sentRuns(table), tablePauseInterval)
	reg.checked = checked
	return reg, nil
}

func (f *registryFinder) awaitTable(ctx context.Context) {
	reg := f.found.Load()
	if reg == nil || reg.checked == nil {
		return
	}
	timeout := time.NewTimer(registryTimeout)
	defer timeout.Stop()
	select {
	case <-reg.checked:
	case <-timeout.C:
	case <-ctx.Done():
	}
}

func (f *registryFinder) sentRuns(store registry.Store) *registry.Runs {
	sender := &sqsSender{sqs: f.opts.SQS, name: f.opts.Queue, home: f.opts.Home, queues: map[string]*aws.Queue{}}
	return registry.NewSentRuns(store, f.scope(), sender, f.lead)
}

func (f *registryFinder) isKnownRun(ctx context.Context, id, path string) (bool, error) {
	if reg := f.found.Load(); reg != nil {
		return reg.runs.Known(ctx, id, path)
	}
	if f.undecided.Load() {
		return false, periodic.ErrUndecided
	}
	return false, nil
}
