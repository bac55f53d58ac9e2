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
	leases leader.Store // nil if no leader can be elected
	runs   runRegistry
	pauses PauseStore
	// pauseInterval is between reads of other instances' pauses.
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
	// Broker contains the environment's first queue. It is nil, and SQS and Home are set, if another process serves the
	// queue.
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

// Reads of a table cost money.
const (
	pauseInterval      = 5 * time.Second
	tablePauseInterval = 30 * time.Second
)

// registryTimeout limits calls at startup.
const registryTimeout = time.Second

type finder struct {
	opts RegistryOptions
	lead registry.Leadership
	log  *slog.Logger

	opening sync.Mutex
	found   atomic.Pointer[sharedRegistry] // nil before open, or without a registry
	// The queue's server has not reported yet whether it has a registry.
	undecided atomic.Bool
	// refusal is a string, the reason that this instance cannot use the registry.
	refusal atomic.Value

	cleanup atomic.Pointer[func()] // may be nil
}

func (f *finder) leaseName() string { return periodic.LeaseName(f.opts.Queue) }

func (f *finder) open(ctx context.Context) (reg *sharedRegistry, err error) {
	f.opening.Lock()
	defer f.opening.Unlock()
	if reg = f.found.Load(); reg != nil {
		return reg, nil
	}

	switch {
	case f.opts.Broker != nil:
		store := f.opts.Broker.Registry()
		reg = newSharedRegistry(registry.NewLeases(store), registry.NewRuns(store, f.scope()), pauseInterval)
	case f.opts.Table != "":
		reg, err = f.table(ctx)
	default:
		reg = f.served(ctx)
	}

	if reg != nil {
		f.found.Store(reg)
	}

	return reg, err
}

func (f *finder) close() {
	if end := f.cleanup.Swap(nil); end != nil {
		(*end)()
	}
}

func newSharedRegistry(leases leader.Store, runs runRegistry, interval time.Duration) *sharedRegistry {
	return &sharedRegistry{leases: leases, runs: runs, pauses: runs, pauseInterval: interval}
}

func (f *finder) scope() registry.Scope {
	scope := registry.Scope{Name: f.leaseName(), Lease: f.leaseName()}
	if f.opts.Local {
		scope.Lease = ""
	}
	return scope
}

// served returns the registry of the queue's server, or one in memory for an only instance. It returns nil otherwise,
// and until the server responds. AWS endpoints are not called.
func (f *finder) served(ctx context.Context) *sharedRegistry {
	u, err := url.Parse(f.opts.QueueURL)
	if err == nil && !strings.Contains(u.Hostname(), ".amazonaws.") && !strings.HasSuffix(u.Hostname(), ".api.aws") {
		ctx, cancel := context.WithTimeout(ctx, registryTimeout)
		defer cancel()
		as := sqsapi.Identity{Token: f.opts.Token, Insecure: f.opts.Insecure}
		if f.opts.SQS != nil {
			as.Sign = f.opts.SQS.Sign
		}
		client, found, err := probe(ctx, u.Scheme+"://"+u.Host, f.scope(), as)
		f.undecided.Store(err != nil)
		if err != nil {
			f.refusal.Store(refusalText(err))
			return nil
		}
		if found {
			return newSharedRegistry(client, client, pauseInterval)
		}
	}

	if !f.opts.Local {
		return nil
	}
	return &sharedRegistry{runs: f.sentRuns(registry.NewMemory())}
}

// probe tries again without the token if the server does not prove that it knows it: other SQS servers have no
// registry, and a tendril that checks signatures needs no token.
func probe(ctx context.Context, endpoint string, scope registry.Scope, as sqsapi.Identity) (client *sqsapi.RegistryClient,
	found bool, err error) {
	client = sqsapi.NewRegistryClient(endpoint, scope, as, nil)
	found, err = client.Probe(ctx)
	if unproved := (*proof.Error)(nil); !errors.As(err, &unproved) {
		return client, found, err
	}
	as.Token = ""
	bare := sqsapi.NewRegistryClient(endpoint, scope, as, nil)
	found, wrong := bare.Probe(ctx)
	switch {
	case wrong == nil && (!found || bare.Signs()):
		return bare, found, nil
	case wrong != nil && !errors.Is(wrong, queue.ErrDenied):
		return bare, false, wrong
	}
	return client, false, err
}

// refusalText returns "" unless the server denies access.
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

// table returns the registry in DynamoDB. Tasks wait for a missing table, but deliveries do not.
func (f *finder) table(ctx context.Context) (*sharedRegistry, error) {
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

// await waits up to registryTimeout for the check of the table.
func (f *finder) await(ctx context.Context) {
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

func (f *finder) sentRuns(store registry.Store) *registry.Runs {
	sender := &sqsSender{sqs: f.opts.SQS, name: f.opts.Queue, home: f.opts.Home, queues: map[string]*aws.Queue{}}
	return registry.NewSentRuns(store, f.scope(), sender, f.lead)
}

func (f *finder) known(ctx context.Context, id, path string) (bool, error) {
	if reg := f.found.Load(); reg != nil {
		return reg.runs.Known(ctx, id, path)
	}
	if f.undecided.Load() {
		return false, periodic.ErrUndecided
	}
	return false, nil
}
