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

// Options configure a [Server]. The zero value is a server that knows its
// health and nothing else.
type Options struct {
	Environment, Version string // the environment's name, and the program's version
	// Status returns what only the environment knows: state, worker, app. The
	// server adds name, version, process id, the queues of Broker, the problems
	// of Deliveries and the checks of Ready. Nil means none of it.
	Status   func() api.Status
	Settings Settings
	Probes   Probes
	Views    Views
	// Deploy replaces the version of the app that runs by the one in the folder or archive at
	// an absolute path, "" for what runs now, and returns when the old one is gone. ctx ends
	// after [MaxDeploy] and when the server is closed, not with the request. A [*DeployError]
	// is a deployment that went wrong; an [*Error] is shown as it is; any other error means
	// that nothing was begun. Nil means that the process runs no app.
	Deploy func(ctx context.Context, path string) (api.DeployResult, error)
	// Reload puts in force what changed since the start: tasks, settings, or a new version.
	// ctx and errors are as for Deploy; a [*periodic.Error] is a file of tasks that is wrong.
	// Nil means that there is nothing to reload.
	Reload    func(ctx context.Context) (api.ReloadResult, error)
	Versions  VersionOptions
	Handlers  Handlers
	Receiving Receiving
	// Drain begins to drain and stop the environment, unless it has begun, and
	// waits until all work is settled or ctx is done. It returns nil when
	// drained and ctx.Err() when ctx was done first; the drain then goes on. An
	// [Error] that is Late says that work was cut off. It must return before the
	// environment stops the console.
	Drain func(ctx context.Context) error
	// Broker is the embedded queue, and Tasks are the periodic tasks. Where there are none their
	// routes answer 409.
	Broker     *broker.Broker
	Tasks      *TaskOptions
	Deliveries *Deliveries // nil for none
	History    History
	// InWork returns the attempt at a message that the app works on now; false for
	// none. Nil means never.
	InWork func(id string) (api.Delivery, bool)
	// Token is what "Authorization: Bearer TOKEN" must carry, see [NewToken].
	// Without one every protected route answers 401.
	Token  string
	Access Access
	Logger *slog.Logger // gets a line for every act; nil discards them
}

// Receiving stops receiving from queues and goes on with it. An error is shown to the caller.
type Receiving struct {
	// Pause stops receiving from a queue for a reason given by a person, also after a restart; an empty queue means
	// every queue. Resume undoes it.
	Pause  func(queue, reason string) error
	Resume func(queue string) error
	// Quiet stops receiving from every queue until Resume or the end of the process; nil means Pause.
	Quiet func(reason string) error
}

// Handlers answer what is not in the table of routes; nil for none.
type Handlers struct {
	Metrics http.Handler // GET /metrics, for Prometheus
	// Pages gets every GET, HEAD and POST of a path that nothing else answers, after the checks of host and origin.
	// It sets a Content-Security-Policy of its own and bounds the bodies that it reads.
	Pages http.Handler
}

// Views return what the environment knows besides its status. Each may be nil: its route then answers 409.
type Views struct {
	// Health returns how the environment does, and Scale what waits and the size wanted.
	Health func() health.Report
	Scale  func() autoscale.Scale
	// Series returns the curves of a range, "" for the shortest; false for one that is not kept.
	Series func(name string) (series.Curves, bool)
	// ScaleDecisions returns the last decisions about the size, and Instances the instances that are known.
	ScaleDecisions func() api.ScaleDecisions
	Instances      func() api.Instances
}

// Settings tell what the environment consists of and change its settings. Where only queues are served all are nil, and
// their routes answer 409.
type Settings struct {
	// Describe returns what the environment consists of. It may ask Amazon, until ctx is done.
	Describe func(ctx context.Context) api.Description
	// Examine looks for problems of the environment, its machine, its queues and its app, until ctx is done.
	Examine func(ctx context.Context) doctor.Examination
	// Configuration returns every option in force and where it may be changed.
	Configuration func() api.Configuration
	// PreviewChange says what a change of the settings file would do, and ChangeSettings writes the file and puts in
	// force what can be. An [*Error] says what is wrong; nothing was changed then.
	PreviewChange func(change api.SettingsChange) (api.SettingsPreview, error)
	// ChangeScope is the scope that a change needs, by the options that it names: it reads nothing.
	ChangeScope    func(change api.SettingsChange) string
	ChangeSettings func(ctx context.Context, change api.SettingsChange) (api.SettingsPreview, error)
}

// Probes return the checks behind a path, all of which must be OK; nil stands for none.
type Probes struct {
	// Ready is for /readyz.
	Ready func() []health.Check
	// Live is for /livez: what a restart would fix and nothing else.
	Live func() []health.Check
	// Started is for /startupz: what stays OK once it was, such as that the app was
	// ready once.
	Started func() []health.Check
}
