package environment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"tendril/aws"
	"tendril/config"
	"tendril/periodic"
	"tendril/queue"
	"tendril/sqsapi"
)

// remoteRegistry finds the registry for a queue that is not this process's own:
// a DynamoDB table where one is named, the tendril that serves the queue, or,
// for an instance that is declared the only one, this process's memory.
func (e *Environment) remoteRegistry(ctx context.Context) (*registry, error) {
	if e.s.RegistryTable != "" {
		return e.tableRegistry(ctx)
	}
	client, found, decided := e.tendrilEndpoint(ctx)
	if e.seeking.Store(!decided); !decided {
		return nil, nil
	}
	if found {
		return e.embeddedRegistry(client), nil
	}
	if e.s.Leader == config.LeaderLocal {
		store := newMemoryStore()
		return &registry{known: store.known, runs: func(lead periodic.Leadership) periodic.Registry {
			return periodic.NewClaims(store, e.sender(), lead)
		}}, nil
	}
	return nil, nil
}

// registryPatience is how long the start waits for a registry: deliveries do not
// wait for it any longer.
const registryPatience = time.Second

// tendrilEndpoint returns a client of the tendril that serves the queue, if it
// is one: Amazon's own endpoints are not asked. decided is false where the server
// did not tell, as one that is just starting.
func (e *Environment) tendrilEndpoint(ctx context.Context) (client *sqsapi.RegistryClient, found, decided bool) {
	u, err := url.Parse(e.home().queue.url)
	if err != nil || strings.Contains(u.Hostname(), ".amazonaws.") || strings.HasSuffix(u.Hostname(), ".api.aws") {
		return nil, false, true
	}
	ctx, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	client = sqsapi.NewRegistryClient(u.Scheme+"://"+u.Host, nil)
	found, err = client.Probe(ctx)
	return client, found, err == nil
}

// Pauses between two looks for a registry whose server did not tell.
const (
	firstSeekPause   = time.Second
	longestSeekPause = 30 * time.Second
)

// seekRegistry goes on looking for a registry that the start did not find out about,
// until the server tells. Then the periodic tasks begin, if there is one.
func (e *Environment) seekRegistry(context.Context) error {
	if !e.seeking.Load() {
		return nil
	}
	run, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for pause := firstSeekPause; e.seeking.Load(); pause = min(2*pause, longestSeekPause) {
			select {
			case <-time.After(pause):
			case <-run.Done():
				return
			}
			e.seekOnce(run)
		}
	}()
	e.steps.push("the search for the registry", func(context.Context) error {
		stop()
		<-ended
		return nil
	})
	return nil
}

// seekOnce looks once, and begins the periodic tasks where there are some. A
// deployment, which may bring others, comes before or after.
func (e *Environment) seekOnce(ctx context.Context) {
	select {
	case <-e.changing:
		defer func() { e.changing <- struct{}{} }()
	case <-ctx.Done():
		return
	}
	reg, err := e.openRegistry(ctx)
	if e.seeking.Load() || ctx.Err() != nil {
		return
	}
	if reg != nil && e.fleet != nil {
		e.report.note(slog.LevelWarn, "scale",
			"the registry was not reached at the start, so this instance does not set the size; start tendril again to have "+
				"it take its turn")
	}
	if t := e.cron.Load(); t != nil && err == nil {
		err = e.reloadAnyTasks(ctx, t.file())
	}
	if err != nil && !errors.Is(err, errNotScheduled) && ctx.Err() == nil {
		e.report.note(slog.LevelError, "periodic", err.Error())
	}
}

// tableRegistry opens the DynamoDB table, and makes it where that was asked for.
// A table that is missing stops no message: tasks wait until it is there.
func (e *Environment) tableRegistry(ctx context.Context) (*registry, error) {
	opts := &aws.Options{Region: e.s.Region, Log: e.report.SDK}
	table, err := aws.OpenTable(ctx, e.s.RegistryTable, opts)
	if err != nil {
		return nil, err
	}
	e.steps.push("the connections to DynamoDB", func(context.Context) error { table.Close(); return nil })
	e.checkTable(table)
	runs := table.Runs(e.leaseName())
	store := tableStore{runs: runs}
	if e.s.Leader == config.LeaderLocal {
		store = loneStore(runs)
	}
	keeper := &scheduleKeeper{inForce: e.schedules, since: store.sinceUnder}
	return &registry{leases: table, known: store.known, pauses: keptPauses{runs, keeper}, pauseRhythm: tablePauseRhythm,
		runs: func(lead periodic.Leadership) periodic.Registry {
			keeper.Registry, keeper.lead = periodic.NewClaims(store, e.sender(), lead), lead
			return e.watchTerm(keeper, lead)
		}}, nil
}

// checkTable checks the table, or makes it, and does not wait for long.
func (e *Environment) checkTable(table *aws.Table) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		defer cancel()
		err := table.Check(ctx)
		if err != nil && e.s.RegistryCreate {
			err = table.Create(ctx)
		}
		switch {
		case err == nil:
			e.expireRecords(ctx, table)
		case !errors.Is(err, context.Canceled):
			e.report.note(slog.LevelWarn, "periodic", fmt.Sprintf("periodic tasks wait for the registry: %v", err))
		}
	}()
	e.steps.push("the check of the registry table", func(context.Context) error {
		cancel()
		<-checked
		return nil
	})
	patience := time.NewTimer(registryPatience)
	defer patience.Stop()
	select {
	case <-checked:
	case <-patience.C:
	}
}

// expireRecords sees to it that the records of old runs leave the table, or
// tells that they do not. Nothing waits for that.
func (e *Environment) expireRecords(ctx context.Context, table *aws.Table) {
	const stay = "the records of old runs are never removed from registry table "
	name := e.s.RegistryTable
	if e.s.RegistryCreate {
		if err := table.Expire(ctx); err != nil {
			e.report.note(slog.LevelWarn, "periodic", fmt.Sprintf("%s%s: %v", stay, name, err))
		}
		return
	}
	yes, by, err := table.Expires(ctx)
	switch {
	case err != nil: // to look takes a permission that nothing else needs
		e.report.note(slog.LevelDebug, "periodic",
			fmt.Sprintf("it is not known whether the records of old runs are removed: %v", err))
	case yes:
	case by != "":
		e.report.note(slog.LevelWarn, "periodic",
			fmt.Sprintf("%s%s: it deletes items by the attribute %q, and ours is \"expires\"; name another table", stay, name,
				by))
	default:
		e.report.note(slog.LevelWarn, "periodic",
			fmt.Sprintf("%s%s: it has no time to live; give --registry-create, or run aws dynamodb update-time-to-live "+
				"--table-name %s --time-to-live-specification Enabled=true,AttributeName=expires", stay, name, name))
	}
}

// tableStore puts the records of runs into a DynamoDB table.
type tableStore struct {
	runs *aws.Runs
	// life stands in the records for the term of the only instance, which is
	// the same after each start; 0 where a leader is elected. A claim that an
	// earlier process left unsettled is another's by it: it takes a second try
	// to send again, which is counted, and on a FIFO queue not made too late.
	life int64
}

// loneStore is the store of an instance that is declared the only one: nobody
// writes a lease that could fence its claims.
func loneStore(runs *aws.Runs) tableStore {
	return tableStore{runs: runs.Unfenced(), life: time.Now().UnixNano()}
}

// written is the term of a record for one of ours.
func (s tableStore) written(term int64) int64 {
	if s.life != 0 && term != 0 {
		return s.life
	}
	return term
}

// read is the term of ours, in which the call is made, for one of a record; 0
// for all others.
func (s tableStore) read(term, record int64) int64 {
	switch {
	case s.life == 0:
		return record
	case record == s.written(term):
		return term
	}
	return 0
}

func (s tableStore) run(f periodic.ScheduledRun) aws.Run {
	return aws.Run{ID: f.ID, Task: f.Task, At: f.ScheduledAt, Manual: f.Manual, Path: pathOf(f)}
}

// Since returns up to when the runs of each task are accounted for.
func (s tableStore) Since(ctx context.Context, term int64, from map[string]time.Time) (map[string]time.Time, error) {
	return s.sinceUnder(ctx, term, from, nil)
}

// sinceUnder is Since for tasks with these schedules.
func (s tableStore) sinceUnder(ctx context.Context, term int64, from map[string]time.Time,
	schedules map[string]string) (map[string]time.Time, error) {
	return s.runs.SinceUnder(ctx, term, from, schedules)
}

// Claim enters that a try is about to be made.
func (s tableStore) Claim(ctx context.Context, term int64, f periodic.ScheduledRun, try int) (periodic.Claim, error) {
	r, err := s.runs.Claim(ctx, s.written(term), s.run(f), try)
	return periodic.Claim{Tries: r.Tries, Term: s.read(term, r.Term), Settled: r.Settled, MessageID: r.MessageID}, err
}

// Mark settles a run.
func (s tableStore) Mark(ctx context.Context, term int64, f periodic.ScheduledRun, messageID string) error {
	return s.runs.Mark(ctx, s.written(term), s.run(f), messageID)
}

// Records returns what is known of runs.
func (s tableStore) Records(ctx context.Context, runs []periodic.ScheduledRun) (map[string]periodic.Claim, error) {
	ids := make([]string, len(runs))
	for i := range runs {
		ids[i] = runs[i].ID
	}
	known, err := s.runs.Records(ctx, ids)
	records := make(map[string]periodic.Claim, len(known))
	for id, r := range known {
		records[id] = periodic.Claim{Tries: r.Tries, Settled: r.Settled, MessageID: r.MessageID}
	}
	return records, err
}

// known reports whether a run was claimed for this path.
func (s tableStore) known(ctx context.Context, id, path string) (bool, error) {
	return s.runs.Known(ctx, id, path)
}

// sender puts runs into the worker's queue, or into another of the same place
// for a task that names one.
func (e *Environment) sender() periodic.Sender {
	return &sqsSender{e: e, queues: map[string]*aws.Queue{}}
}

type sqsSender struct {
	e      *Environment
	mu     sync.Mutex
	queues map[string]*aws.Queue
}

// Send sends one message.
func (s *sqsSender) Send(ctx context.Context, name string, m queue.Outgoing) (queue.Sent, error) {
	q, err := s.find(ctx, name)
	if err != nil {
		return queue.Sent{}, errors.Join(periodic.ErrNotSent, err)
	}
	sent, err := q.SendOnce(ctx, m)
	return sent, errors.Join(err, sent.Err)
}

func (s *sqsSender) find(ctx context.Context, name string) (*aws.Queue, error) {
	if own, ok := s.e.home().queue.Queue.(*aws.Queue); ok && name == s.e.home().queue.name {
		return own, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[name]; q != nil {
		return q, nil
	}
	q, err := s.e.sqs.Queue(ctx, name)
	if err == nil {
		s.queues[name] = q
	}
	return q, err
}

// memoryStore keeps the records of the only instance for a day. After a restart
// it begins anew: runs that were due meanwhile are not made up for.
type memoryStore struct {
	mu      sync.Mutex
	since   map[string]time.Time
	records map[string]memoryRecord
}

type memoryRecord struct {
	periodic.Claim
	at   time.Time
	path string
}

func newMemoryStore() *memoryStore {
	return &memoryStore{since: map[string]time.Time{}, records: map[string]memoryRecord{}}
}

// Since returns up to when the runs of each task are accounted for.
func (s *memoryStore) Since(_ context.Context, _ int64, from map[string]time.Time) (map[string]time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := make(map[string]time.Time, len(from))
	for task, at := range from {
		if known, ok := s.since[task]; ok {
			at = known
		}
		s.since[task], since[task] = at, at
	}
	return since, nil
}

// Claim enters that a try is about to be made.
func (s *memoryStore) Claim(_ context.Context, term int64, f periodic.ScheduledRun, try int) (periodic.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.records {
		if f.ScheduledAt.Sub(r.at) > 48*time.Hour {
			delete(s.records, id)
		}
	}
	r := s.records[f.ID]
	if !r.Settled && r.Tries == try-1 {
		r.Tries, r.Term, r.at, r.path = try, term, f.ScheduledAt, pathOf(f)
		s.records[f.ID] = r
	}
	return r.Claim, nil
}

// Mark settles a run.
func (s *memoryStore) Mark(_ context.Context, _ int64, f periodic.ScheduledRun, messageID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[f.ID]
	if !r.Settled {
		r.Settled, r.MessageID, r.at = true, messageID, f.ScheduledAt
		s.records[f.ID] = r
	}
	if !f.Manual && s.since[f.Task].Before(f.ScheduledAt) {
		s.since[f.Task] = f.ScheduledAt
	}
	return nil
}

// Records returns what is known of runs.
func (s *memoryStore) Records(_ context.Context, runs []periodic.ScheduledRun) (map[string]periodic.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	records := map[string]periodic.Claim{}
	for i := range runs {
		if r, ok := s.records[runs[i].ID]; ok {
			records[runs[i].ID] = r.Claim
		}
	}
	return records, nil
}

// known reports whether this process enqueued a run for this path.
func (s *memoryStore) known(_ context.Context, id, path string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[id]
	return r.Tries > 0 && r.path == path, nil
}

// pathOf is the path that a run's message goes to.
func pathOf(run periodic.ScheduledRun) string {
	for _, a := range run.Message.Attributes {
		if a.Name == queue.AttributePath {
			return a.Value
		}
	}
	return ""
}
