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
	"tendril/internal/sqsapi"
	"tendril/queue"
)

// registry is where instances agree on who leads, which runs were enqueued, and which tasks
// are paused.
type registry struct {
	leases leader.Store // nil where no leader can be elected
	// runs returns the registry of runs for whoever leads.
	runs func(lead periodic.Leadership) periodic.Registry
	// known reports whether a run was made with this path.
	known  func(ctx context.Context, runID, path string) (bool, error)
	pauses PauseStore // nil where the registry keeps none
	// pauseInterval is how often pauses by other instances are looked for.
	pauseInterval time.Duration
	// checked is closed when it is known whether the registry is there; nil where that is known at once.
	checked <-chan struct{}
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
	// Token is what the registry of a tendril that serves the queue asks for; "" for none. Insecure sends it to servers
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
	log  *slog.Logger

	found atomic.Pointer[registry] // nil while nothing asked for it, and where there is none
	// undecided says that the queue's server did not tell yet whether it has a registry.
	undecided atomic.Bool
	// refusal is why this instance cannot use it, as a string; "" where that is not why.
	refusal atomic.Value

	cleanup atomic.Pointer[func()] // nil for none
}

func (f *finder) leaseName() string { return periodic.LeaseName(f.opts.Queue) }

// open finds the registry, once; nil when there is none.
func (f *finder) open(ctx context.Context) (reg *registry, err error) {
	if reg = f.found.Load(); reg != nil {
		return reg, nil
	}
	switch {
	case f.opts.Broker != nil:
		reg = f.embedded(f.opts.Broker.Registry())
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

// embedded is the registry of an embedded queue, here or on the server of the queue.
func (f *finder) embedded(r brokerRegistry) *registry {
	runs := NewEmbeddedRuns(r, f.opts.Queue, f.opts.Local)
	return &registry{leases: r, known: runs.Known, pauses: runs, pauseInterval: pauseInterval,
		runs: func(periodic.Leadership) periodic.Registry { return runs }}
}

// served is the registry of the tendril that serves the queue, or this process's memory where
// it is declared the only instance; nil for neither, or while the server does not tell.
// Amazon's own endpoints are not asked.
func (f *finder) served(ctx context.Context) *registry {
	u, err := url.Parse(f.opts.QueueURL)
	if err == nil && !strings.Contains(u.Hostname(), ".amazonaws.") && !strings.HasSuffix(u.Hostname(), ".api.aws") {
		ctx, cancel := context.WithTimeout(ctx, registryTimeout)
		defer cancel()
		as := sqsapi.Identity{Token: f.opts.Token, Insecure: f.opts.Insecure}
		if f.opts.SQS != nil {
			as.Sign = f.opts.SQS.Sign
		}
		client, found, err := probe(ctx, u.Scheme+"://"+u.Host, as)
		if f.undecided.Store(err != nil); err != nil {
			f.refusal.Store(refusalText(err))
			return nil
		}
		if found {
			return f.embedded(client)
		}
	}
	if !f.opts.Local {
		return nil
	}
	runs := newMemoryRuns()
	return &registry{known: runs.Known, runs: f.claims(runs)}
}

// probe finds out whether the server of the queue keeps a registry. Where it does not prove that it knows the token, it
// is asked without one: another SQS server has no registry, and one that wants signatures needs no token.
func probe(ctx context.Context, endpoint string, as sqsapi.Identity) (client *sqsapi.RegistryClient, found bool,
	err error) {
	client = sqsapi.NewRegistryClient(endpoint, as, nil)
	found, err = client.Probe(ctx)
	if unproved := (*proof.Error)(nil); !errors.As(err, &unproved) {
		return client, found, err
	}
	as.Token = ""
	bare := sqsapi.NewRegistryClient(endpoint, as, nil)
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
func (f *finder) table(ctx context.Context) (*registry, error) {
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
	runs := table.Runs(f.leaseName())
	if f.opts.Local {
		runs = table.LocalRuns(f.leaseName())
	}
	return &registry{leases: table, known: runs.Known, pauses: runs, pauseInterval: tablePauseInterval,
		runs: f.claims(runs), checked: checked}, nil
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

// claims are the runs of a store, for a queue that knows nothing of runs.
func (f *finder) claims(store periodic.Store) func(periodic.Leadership) periodic.Registry {
	sender := &sqsSender{sqs: f.opts.SQS, name: f.opts.Queue, home: f.opts.Home, queues: map[string]*aws.Queue{}}
	return func(lead periodic.Leadership) periodic.Registry { return periodic.NewClaims(store, sender, lead) }
}

// known reports whether the registry has a run, with the path that its message goes to.
func (f *finder) known(ctx context.Context, id, path string) (bool, error) {
	if reg := f.found.Load(); reg != nil {
		return reg.known(ctx, id, path)
	}
	if f.undecided.Load() {
		return false, periodic.ErrUndecided
	}
	return false, nil
}
