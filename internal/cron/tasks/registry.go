package tasks

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
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

// sharedRegistry is where instances agree on who leads, which runs were enqueued, and which tasks are paused.
type sharedRegistry struct {
	leases leader.Store // nil where no leader can be elected
	runs   runRegistry
	pauses PauseStore // nil where the registry keeps none
	// pauseInterval is how often pauses by other instances are read.
	pauseInterval time.Duration
	// checked is closed when it is known whether the registry is there; nil where that is known at once.
	checked <-chan struct{}
}

// runRegistry has the scheduled runs and pauses of one environment: [registry.Runs], here or on another server.
type runRegistry interface {
	periodic.Registry
	PauseStore
	// Known reports whether a run was enqueued with a message to this path.
	Known(ctx context.Context, runID, path string) (bool, error)
}

// PauseStore keeps the tasks that a person paused.
type PauseStore interface {
	// SetPaused records that a task is paused, for a reason that may be "", or no longer is.
	SetPaused(ctx context.Context, task, reason string, paused bool) error
	// Paused returns the reasons by task.
	Paused(ctx context.Context) (map[string]string, error)
}

// RegistryOptions say where the registry of an environment is looked for.
type RegistryOptions struct {
	// Queue is the name of the environment's first queue, and QueueURL its URL.
	Queue, QueueURL string
	// Broker has that queue; nil for one that is served elsewhere.
	Broker *broker.Broker
	// SQS and Home are the connection to a queue that is served elsewhere, and the queue.
	SQS  *aws.SQS
	Home *aws.Queue
	// Token is the token of the registry of a tendril that serves the queue, if it has one. Insecure sends it to servers
	// that do not prove that they know it.
	Token    string
	Insecure bool
	// Local declares this instance the only one: no leader is elected.
	Local bool
	// Table is the name of a DynamoDB table, in Region; "" for none. Create creates it, with Tags.
	Table, Region string
	Create        bool
	Tags          map[string]string
	// SDK receives what the AWS SDK logs.
	SDK aws.LogFunc
}

// How often an instance looks for pauses by others. A look at DynamoDB costs.
const (
	pauseInterval      = 5 * time.Second
	tablePauseInterval = 30 * time.Second
)

// registryTimeout is how long the tasks, and where the server of the queue keeps the registry the start, wait for a
// registry at first.
const registryTimeout = time.Second

// finder finds the registry of an environment, and keeps it.
type finder struct {
	opts RegistryOptions
	lead registry.Leadership
	log  *slog.Logger

	found atomic.Pointer[sharedRegistry] // nil while nothing asked for it, and where there is none
	// undecided says that the queue's server did not tell yet whether it has a registry.
	undecided atomic.Bool
	// refusal is why this instance cannot use it, as a string; "" where that is not why.
	refusal atomic.Value

	cleanup atomic.Pointer[func()] // nil for none
}

func (f *finder) leaseName() string { return periodic.LeaseName(f.opts.Queue) }

// open finds the registry, once; nil when there is none.
func (f *finder) open(ctx context.Context) (reg *sharedRegistry, err error) {
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

// close ends what open began.
func (f *finder) close() {
	if end := f.cleanup.Swap(nil); end != nil {
		(*end)()
	}
}

func newSharedRegistry(leases leader.Store, runs runRegistry, interval time.Duration) *sharedRegistry {
	return &sharedRegistry{leases: leases, runs: runs, pauses: runs, pauseInterval: interval}
}

// scope names the records of this environment.
func (f *finder) scope() registry.Scope {
	scope := registry.Scope{Name: f.leaseName(), Lease: f.leaseName()}
	if f.opts.Local {
		scope.Lease = "" // no other instance writes a lease
	}
	return scope
}

// served is the registry of the tendril that serves the queue, or this process's memory where
// it is declared the only instance; nil for neither, or while the server does not tell.
// Amazon's own endpoints are not asked.
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
		if f.undecided.Store(err != nil); err != nil {
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

// probe finds out whether the server of the queue keeps a registry. Where it does not prove that it knows the token, it
// is asked without one: another SQS server has no registry, and one that wants signatures needs no token.
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
	case wrong != nil && !errors.Is(wrong, queue.ErrDenied): // it cannot answer now
		return bare, false, wrong
	}
	return client, false, err
}

// refusalText says why the registry does not serve this instance; "" for an error of another kind.
func refusalText(err error) string {
	unproved := (*proof.Error)(nil)
	switch {
	case errors.As(err, &unproved):
		return err.Error()
	case errors.Is(err, queue.ErrDenied):
		return "the server of the queue keeps a registry for those who know its token: set TENDRIL_REGISTRY_TOKEN to " +
			"the content of the file " + TokenFile + " in its data directory"
	}
	return ""
}

// table is the registry in a DynamoDB table, which is created where that was asked for. A table
// that is missing stops no message: tasks wait until it is there.
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

// await waits until the registry was checked, which may create its table, or did not answer in time. The workers run
// by then: no message waits for it.
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

// sentRuns are the runs of a queue that cannot recognise them.
func (f *finder) sentRuns(store registry.Store) *registry.Runs {
	sender := &sqsSender{sqs: f.opts.SQS, name: f.opts.Queue, home: f.opts.Home, queues: map[string]*aws.Queue{}}
	return registry.NewSentRuns(store, f.scope(), sender, f.lead)
}

// known reports whether the registry has a run, with the path that its message goes to.
func (f *finder) known(ctx context.Context, id, path string) (bool, error) {
	if reg := f.found.Load(); reg != nil {
		return reg.runs.Known(ctx, id, path)
	}
	if f.undecided.Load() {
		return false, periodic.ErrUndecided
	}
	return false, nil
}
