package console

import (
	"context"
	"log/slog"
	"net/http"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/autoscale"
	"tendril/internal/observe/doctor"
	"tendril/internal/observe/health"
	"tendril/internal/observe/series"
)

// Options configure a [Server]. The zero value serves probes and an empty status.
type Options struct {
	Environment, Version string // Version is tendril's
	// Status returns state that only the environment knows, such as workers and app; may be nil.
	Status   func() api.Status
	Settings Settings
	Probes   Probes
	Views    Views
	// Deploy replaces the app's running version with the folder or archive at an absolute path, or redeploys the
	// current one if path is "". It returns once the previous version has stopped or, if the deployment is to all
	// instances, once it has started. Its ctx ends after [api.MaxDeploy] or when the server closes, not with the
	// request. A failed deployment returns a [*api.DeployError]; an [*api.Error] is passed to the caller; any other
	// error means that nothing was started. Nil means that the process runs no app.
	Deploy func(ctx context.Context, path string) (api.DeployResult, error)
	// Reload applies changed tasks and settings, or deploys a changed version. Context and errors are as for Deploy; an
	// invalid task file is a [*periodic.Error]. It may be nil.
	Reload    func(ctx context.Context) (api.ReloadResult, error)
	Versions  VersionOptions
	Handlers  Handlers
	Receiving Receiving
	// Drain starts draining and stopping the environment, and waits until all work is settled or ctx is done. It
	// returns nil when drained and ctx.Err() if the drain is still in progress. An [api.Error] with Late set reports
	// that work was cut off. Drain must return before the environment stops the console.
	Drain func(ctx context.Context) error
	// Drained is closed once all deliveries have ended and no more can start; nil means never.
	Drained <-chan struct{}
	// If Broker or Tasks is nil, its routes return 409.
	Broker     *broker.Broker
	Tasks      *TaskOptions
	Deliveries *Deliveries // may be nil
	History    History
	Peers      Peers
	InWork     func(id string) (api.Delivery, bool) // deliveries in progress; may be nil
	// Token is the owner's bearer token, see [api.NewToken]. If it is "", no request has the owner's permissions.
	Token  string
	Access Access
	Logger *slog.Logger // may be nil
}

// Peers are the other instances of the environment. Requests with ?instance=ID are forwarded to that peer, and peers
// may read from this instance.
type Peers interface {
	// ID returns the ID of this instance, or "" if it shares no registry.
	ID() string
	// Secrets returns the secrets that other instances use to authenticate to this one.
	Secrets() []string
	Answer(ctx context.Context, id string, r *api.Request, into any) error
	Follow(ctx context.Context, id string, r *api.Request, each func(line []byte) error) error
}

// Receiving pauses and resumes queues. Its errors are passed to the caller.
type Receiving struct {
	// Pause stops receiving from a queue, or from all queues for "", until Resume, even across restarts. With a fleet
	// key, both apply to all instances unless why.This or this is set. by identifies the caller.
	Pause  func(ctx context.Context, queue string, why api.Reason, by string) (api.Paused, error)
	Resume func(ctx context.Context, queue string, this bool) (api.Paused, error)
	// Quiet stops receiving from all queues until Resume is called or the process exits. If Quiet is nil, Pause is
	// used.
	Quiet func(reason string) error
}

// Handlers serve requests outside the route table; each may be nil.
type Handlers struct {
	Metrics http.Handler // GET /metrics
	// Pages handles GET, HEAD and POST requests for paths not reserved for programs, after the host and origin checks,
	// and renders the result of GET /login. It sets its own Content-Security-Policy and limits the bodies it reads.
	Pages http.Handler
}

// Views return state of the environment. If a field is nil, its route returns 409.
type Views struct {
	Health func() health.Report
	Scale  func() autoscale.Scale
	// Series returns the curves of a range, or of the shortest range for "". It returns false for an unknown range.
	Series         func(name string) (series.Curves, bool)
	ScaleDecisions func() api.ScaleDecisions
	Instances      func() api.Instances
}

// Settings describe and change the settings. If a field is nil, its route returns 409. If the environment only serves
// queues, all fields except Describe and Examine are nil.
type Settings struct {
	Describe      func(ctx context.Context) api.Description
	Examine       func(ctx context.Context) doctor.Examination
	Configuration func() api.Configuration
	// PreviewChange returns the effect of a change. ChangeSettings makes the change and, if possible, applies it
	// without a restart. After an error, nothing has changed.
	PreviewChange func(change api.SettingsChange) (api.SettingsPreview, error)
	// ChangeScope returns the scope required for a change, based only on its options' names.
	ChangeScope    func(change api.SettingsChange) string
	ChangeSettings func(ctx context.Context, change api.SettingsChange) (api.SettingsPreview, error)
}

// Probes return the checks of each probe; all must pass. A nil probe succeeds.
type Probes struct {
	Ready func() []health.Check
	// Live returns the checks of /livez: only those that a restart would fix.
	Live func() []health.Check
	// Started returns the checks of /startupz, such as whether the app has ever been ready. A passed check stays
	// passed.
	Started func() []health.Check
}
