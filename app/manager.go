package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Errors of a [Manager].
var (
	// ErrBusy: another change is under way, or a deployment took this one's place.
	ErrBusy = errors.New("another deployment or change of size is under way; wait for its end")
	// ErrStopped: the manager was stopped.
	ErrStopped = errors.New("the environment is stopping")
	// ErrRolledBack: the new version did not come up; the old one is still serving.
	ErrRolledBack = errors.New("the deployment was rolled back")
)

// Replica is one running copy of the app, or the helpers of one version.
type Replica interface {
	// Failed is closed when it was given up: it will not be ready any more.
	Failed() <-chan struct{}
	// Err says why, after Failed.
	Err() error
	// Stop ends it; ctx bounds how gently.
	Stop(ctx context.Context) error
}

// ReplicaError says which replica kept a new version from serving.
type ReplicaError struct {
	// Replica is stopped by the time that [Manager.Deploy] returns.
	Replica Replica
	// Err says why.
	Err error
}

// Error returns the text of the reason.
func (e *ReplicaError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ReplicaError) Unwrap() error { return e.Err }

// Launcher starts what a version consists of. V is what describes a version.
type Launcher[V any] interface {
	// Address returns where the next copy of v will listen.
	Address(v V) (string, error)
	// Launch starts a copy of v that listens at m.Address, and calls m.SetReady
	// as long as it runs. ctx bounds the start alone.
	Launch(ctx context.Context, v V, m *Member) (Replica, error)
	// Helpers starts the processes of v that take no deliveries; nil where it
	// has none.
	Helpers(ctx context.Context, v V) (Replica, error)
}

// Options configure a [Manager]. The zero value is valid.
type Options struct {
	// ReadyTimeout is how long a new copy may take to be ready in a deployment
	// or when the size grows; 0 means 5 minutes.
	ReadyTimeout time.Duration
	// DrainTimeout returns how long retired copies may finish their work before they
	// are stopped all the same. It is asked anew before each drain, since what a
	// delivery may take can change meanwhile; nil, and an answer of 0, mean 10 minutes.
	DrainTimeout func() time.Duration
	// StopTimeout bounds the stop of one copy; 0 means 1 minute.
	StopTimeout time.Duration
	// Hurry ends the gentleness of every stop when it is done, also of those in a change
	// that fails or is given up; nil leaves that to [Manager.Stop].
	Hurry context.Context
	// Events are the listeners.
	Events Events
}

// Events are a manager's listeners; every field may be nil. They are called one at a
// time, may ask the manager, and must not change it.
type Events struct {
	// Deploying: copies of a new version are being started beside the old ones.
	Deploying func(copies int)
	// Switching: the new version is ready, and gets the deliveries next.
	Switching func(copies int)
	// Switched: the new version has the deliveries now; the old one finishes.
	Switched func(took time.Duration)
	// Deployed: the old version is gone.
	Deployed func(took time.Duration)
	// RolledBack: the new version did not come up, and is gone.
	RolledBack func(cause error)
	// Scaled: the number of copies that serve changed; those that no longer do
	// may still finish their work.
	Scaled func(from, to int)
	// Forced: a copy was stopped with deliveries in work, since its drain took
	// longer than limit, or, where limit is 0, since the manager is stopped.
	Forced func(address string, inWork int, limit time.Duration)
}

// Manager keeps a number of copies of one version running. Make it with
// [NewManager]; its methods are safe for concurrent use.
type Manager[V any] struct {
	router *Router
	launch Launcher[V]
	opts   Options

	turn *turn
	// retiring are the copies that a scale-in took the work from.
	retiring sync.WaitGroup
	// ending ends waits of a change when the manager is stopped; hurried ends
	// the gentleness of stops when that stop's is over, or with [Options.Hurry].
	ending, hurried context.Context
	endNow, hurry   context.CancelFunc
	stopped         bool // under turn

	mu      sync.Mutex
	version V
	copies  []running
	helpers Replica

	eventMu sync.Mutex // copies that are stopped beside each other tell of it one by one
}

type running struct {
	member  *Member
	replica Replica
}

// NewManager returns a manager that runs nothing yet.
func NewManager[V any](router *Router, launch Launcher[V], opts *Options) *Manager[V] {
	m := &Manager[V]{router: router, launch: launch, turn: newTurn()}
	if opts != nil {
		m.opts = *opts
	}
	for d, usual := range map[*time.Duration]time.Duration{
		&m.opts.ReadyTimeout: 5 * time.Minute, &m.opts.StopTimeout: time.Minute,
	} {
		if *d <= 0 {
			*d = usual
		}
	}
	m.ending, m.endNow = context.WithCancel(context.Background())
	if m.opts.Hurry == nil {
		m.opts.Hurry = context.Background()
	}
	m.hurried, m.hurry = context.WithCancel(m.opts.Hurry)
	return m
}

// Start runs n copies of v and its helpers, and returns when all were started;
// none need be ready by then. After an error none of them runs. It comes before any
// other change: a deployment that is asked for meanwhile waits, a change of size is refused.
func (m *Manager[V]) Start(ctx context.Context, v V, n int) error {
	ctx, end, err := m.begin(ctx, toStart)
	if err != nil {
		return err
	}
	defer end()
	copies, err := m.launchAll(ctx, v, n)
	if err == nil {
		var helpers Replica
		if helpers, err = m.launch.Helpers(ctx, v); err == nil {
			m.become(v, copies, helpers)
			m.router.Admit(members(copies)...)
			return nil
		}
	}
	m.discard(copies)
	return err
}

func (m *Manager[V]) become(v V, copies []running, helpers Replica) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version, m.copies, m.helpers = v, copies, helpers
}

// Version returns the version that serves.
func (m *Manager[V]) Version() V {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.version
}

// Size returns how many copies there are.
func (m *Manager[V]) Size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.copies)
}

// Replicas returns the copies that serve and the helpers, in the order of their
// start.
func (m *Manager[V]) Replicas() []Replica {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Replica
	for _, c := range m.copies {
		all = append(all, c.replica)
	}
	if m.helpers != nil {
		all = append(all, m.helpers)
	}
	return all
}

// launchAll starts n copies of v. After an error those that run are returned.
func (m *Manager[V]) launchAll(ctx context.Context, v V, n int) ([]running, error) {
	var copies []running
	for range n {
		if ctx.Err() != nil {
			return copies, ctx.Err()
		}
		var c running
		launched := make(chan error, 1)
		go func() {
			var err error
			c, err = m.launchOne(ctx, v)
			launched <- err
		}()
		var err error
		select {
		case err = <-launched:
		case <-ctx.Done():
			// The copy that is being started may take a grace to end: the others end
			// beside it.
			m.discard(copies)
			copies, err = nil, <-launched
		}
		if err != nil {
			return copies, err
		}
		copies = append(copies, c)
	}
	return copies, ctx.Err()
}

func (m *Manager[V]) launchOne(ctx context.Context, v V) (running, error) {
	address, err := m.launch.Address(v)
	if err != nil {
		return running{}, err
	}
	member := m.router.Add(address)
	replica, err := m.launch.Launch(ctx, v, member)
	if err != nil {
		m.router.Remove(member)
	}
	return running{member, replica}, err
}

// Deploy starts as many copies of v as there are of the version that serves,
// moves deliveries over once all are ready, lets the old ones finish and stops
// them. When the new version does not come up it is stopped again, and the error
// wraps [ErrRolledBack] and the cause. ctx ends the deployment as a failure would, as
// long as deliveries were not moved over; a stop, be it the manager's or the cause of
// ctx's end, is told as [ErrStopped]. A growth under way is given up: its copies
// would be of the old version.
func (m *Manager[V]) Deploy(ctx context.Context, v V) error {
	ctx, end, err := m.begin(ctx, toDeploy)
	if err != nil {
		return err
	}
	defer end()
	began := time.Now()
	m.mu.Lock()
	old, oldHelpers, oldVersion := m.copies, m.helpers, m.version
	m.mu.Unlock()
	n := max(len(old), 1)
	notify(&m.eventMu, m.opts.Events.Deploying, n)
	copies, err := m.launchAll(ctx, v, n)
	if err == nil {
		err = m.awaitReady(ctx, copies)
	}
	if err != nil {
		return m.rollBack(ctx, copies, err)
	}
	helpers, err := m.exchangeHelpers(ctx, v, oldVersion, oldHelpers, copies)
	if err != nil {
		return m.rollBack(ctx, copies, err)
	}
	m.become(v, copies, helpers)
	limit := m.drainTimeout() // of the old version, before the settings of the new one are in force
	notify(&m.eventMu, m.opts.Events.Switching, n)
	m.router.Switch(members(copies), members(old))
	notify(&m.eventMu, m.opts.Events.Switched, time.Since(began))
	m.retireAll(old, limit)
	notify(&m.eventMu, m.opts.Events.Deployed, time.Since(began))
	return nil
}

// Adopt makes v the version that serves without a new copy: those that run are of it
// as they are, and those that are started later.
func (m *Manager[V]) Adopt(ctx context.Context, v V) error {
	_, end, err := m.begin(ctx, toDeploy)
	if err != nil {
		return err
	}
	defer end()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version = v
	return nil
}

// exchangeHelpers ends the old helpers and starts the new ones, or the old ones
// again when the new ones cannot be started, or when a new copy went away meanwhile:
// the end of the old helpers may take as long as a stop may.
func (m *Manager[V]) exchangeHelpers(ctx context.Context, v, oldVersion V, old Replica, copies []running) (Replica,
	error) {
	m.stop(old)
	helpers, err := m.launch.Helpers(ctx, v)
	if err == nil {
		if err = stillReady(copies); err == nil {
			return helpers, nil
		}
		m.stop(helpers)
	}
	again, againErr := m.launch.Helpers(context.WithoutCancel(ctx), oldVersion)
	m.mu.Lock()
	m.helpers = again
	m.mu.Unlock()
	if againErr != nil {
		err = errors.Join(err, fmt.Errorf("starting the helpers of the old version again: %w", againErr))
	}
	return nil, err
}

func (m *Manager[V]) rollBack(ctx context.Context, copies []running, cause error) error {
	if errors.Is(context.Cause(ctx), ErrStopped) {
		cause = ErrStopped
	}
	m.discard(copies)
	notify(&m.eventMu, m.opts.Events.RolledBack, cause)
	return fmt.Errorf("%w: %w", ErrRolledBack, cause)
}

// awaitReady waits until every copy is ready at the same time.
func (m *Manager[V]) awaitReady(ctx context.Context, copies []running) error {
	limit := time.NewTimer(m.opts.ReadyTimeout)
	defer limit.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		late, err := unready(copies)
		if err != nil || late == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return &ReplicaError{late.replica,
				fmt.Errorf("the new version was not ready within %s: %s", m.opts.ReadyTimeout, late.member.why())}
		case <-look.C:
		}
	}
}

// stillReady says what became of copies that were all ready.
func stillReady(copies []running) error {
	late, err := unready(copies)
	if err == nil && late != nil {
		err = &ReplicaError{late.replica, fmt.Errorf("the new version was ready and is no longer: %s", late.member.why())}
	}
	return err
}

// unready returns the first copy that is not ready, nil when all are. The error is
// that of one that was given up, whatever the others do.
func unready(copies []running) (late *running, err error) {
	for i, c := range copies {
		select {
		case <-c.replica.Failed():
			return nil, &ReplicaError{c.replica, c.replica.Err()}
		default:
		}
		if late == nil && !c.member.Ready() {
			late = &copies[i]
		}
	}
	return late, nil
}

// why says why the member is not ready.
func (m *Member) why() string {
	m.router.mu.Lock()
	defer m.router.mu.Unlock()
	return m.reason
}

// Scale brings the number of copies of the version that serves to n, at least 1.
// It returns when new ones are ready, or when those that are too many get no more
// work; these finish what they have, and end, while other changes go on. The error is
// [ErrBusy] also when a deployment took its place.
func (m *Manager[V]) Scale(ctx context.Context, n int) error {
	ctx, end, err := m.begin(ctx, toScale)
	if err != nil {
		return err
	}
	defer end()
	n = max(n, 1)
	m.mu.Lock()
	copies, v := m.copies, m.version
	m.mu.Unlock()
	from := len(copies)
	switch {
	case n > from:
		more, err := m.launchAll(ctx, v, n-from)
		if err == nil {
			err = m.awaitReady(ctx, more)
		}
		if err != nil {
			m.discard(more)
			if errors.Is(context.Cause(ctx), ErrBusy) {
				return ErrBusy
			}
			return fmt.Errorf("growing from %d to %d copies of the app: %w", from, n, err)
		}
		m.setCopies(append(copies[:from:from], more...))
		m.router.Admit(members(more)...)
	case n < from:
		m.setCopies(copies[:n:n])
		m.router.Switch(nil, members(copies[n:]))
		m.retiring.Go(func() { m.retireAll(copies[n:], m.drainTimeout()) })
	default:
		return nil
	}
	if f := m.opts.Events.Scaled; f != nil {
		m.eventMu.Lock()
		defer m.eventMu.Unlock()
		f(from, n)
	}
	return nil
}

func (m *Manager[V]) setCopies(copies []running) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.copies = copies
}

// Stop ends everything at once, gently as long as ctx is not done. A change
// under way is given up. Deliveries must have ended before.
func (m *Manager[V]) Stop(ctx context.Context) error {
	defer context.AfterFunc(ctx, m.hurry)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.hurried, cancel)()
	m.endNow()
	m.turn.take()
	defer m.turn.pass()
	m.stopped = true
	m.mu.Lock()
	copies, helpers := m.copies, m.helpers
	m.copies, m.helpers = nil, nil
	m.mu.Unlock()
	var all sync.WaitGroup
	errs := make([]error, len(copies)+1)
	for i, c := range copies {
		all.Go(func() {
			errs[i] = c.replica.Stop(ctx)
			m.router.Remove(c.member)
		})
	}
	if helpers != nil {
		all.Go(func() { errs[len(copies)] = helpers.Stop(ctx) })
	}
	all.Wait()
	m.retiring.Wait()
	return errors.Join(errs...)
}

// retireAll lets retired copies finish, for limit at most, and stops each as soon as
// it has.
func (m *Manager[V]) retireAll(copies []running, limit time.Duration) {
	ctx, cancel := context.WithTimeout(m.ending, limit)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range copies {
		all.Go(func() {
			if c.member.Retire(ctx) != nil {
				m.force(c.member, limit)
			}
			m.stop(c.replica)
			m.router.Remove(c.member)
		})
	}
	all.Wait()
}

// force tells that a copy is stopped with deliveries in work.
func (m *Manager[V]) force(c *Member, limit time.Duration) {
	if m.ending.Err() != nil {
		limit = 0
	}
	if f := m.opts.Events.Forced; f != nil {
		m.eventMu.Lock()
		defer m.eventMu.Unlock()
		f(c.Address, c.InWork(), limit)
	}
}

func (m *Manager[V]) drainTimeout() time.Duration {
	const usual = 10 * time.Minute
	if m.opts.DrainTimeout == nil {
		return usual
	}
	return max(cmp.Or(m.opts.DrainTimeout(), usual), 0)
}

// discard stops copies that never had work, all at once: one after the other they
// would take a grace each.
func (m *Manager[V]) discard(copies []running) {
	var all sync.WaitGroup
	for _, c := range copies {
		all.Go(func() {
			m.stop(c.replica)
			m.router.Remove(c.member)
		})
	}
	all.Wait()
}

func (m *Manager[V]) stop(r Replica) {
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(m.hurried, m.opts.StopTimeout)
	defer cancel()
	// What outlives its KILL is told by whoever runs it.
	_ = r.Stop(ctx)
}

// changeKind is what a change is for.
type changeKind int

const (
	toStart changeKind = iota
	toScale
	toDeploy
)

// begin begins a change. The context that it returns ends with ctx, with the manager,
// and, with the cause [ErrBusy], when a deployment takes the place of a change of size;
// end ends the change.
func (m *Manager[V]) begin(ctx context.Context, k changeKind) (_ context.Context, end func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	stopped := context.AfterFunc(m.ending, func() { cancel(ErrStopped) })
	switch k {
	case toStart:
		err = m.turn.change(func() {}) // a deployment waits for what it is to replace
	case toScale:
		err = m.turn.change(func() { cancel(ErrBusy) })
	case toDeploy:
		err = m.turn.deploy(ctx)
	}
	if err == nil && (m.stopped || m.ending.Err() != nil) {
		m.turn.pass()
		err = ErrStopped
	}
	if err != nil {
		stopped()
		cancel(nil)
		if m.ending.Err() != nil || errors.Is(context.Cause(ctx), ErrStopped) {
			err = ErrStopped
		}
		return nil, nil, err
	}
	return ctx, func() { m.turn.pass(); stopped(); cancel(nil) }, nil
}

func members(copies []running) []*Member {
	list := make([]*Member, len(copies))
	for i, c := range copies {
		list[i] = c.member
	}
	return list
}

// notify calls f where there is one, while it holds mu.
func notify[E any](mu *sync.Mutex, f func(E), event E) {
	if f != nil {
		mu.Lock()
		defer mu.Unlock()
		f(event)
	}
}
