package sqsapi

import (
	"context"
	"time"

	"tendril/internal/registry"
	"tendril/queue"
)

// registryPrefix is the X-Amz-Target prefix of the registry's actions, which are not part of SQS.
const registryPrefix = "Tendril_20261120."

// [RegistryClient] uses the types below too. It recognizes a registry's responses by the fields without the option
// omitempty or omitzero.

type leaseWire struct {
	Owner                string
	Version              string
	Term                 int64
	DurationMilliseconds int64
	Released             bool
	Data                 string
}

func toWire(l queue.Lease) leaseWire {
	return leaseWire{l.Owner, l.Version, l.Term, l.Duration.Milliseconds(), l.Released, l.Data}
}

func (w leaseWire) lease() queue.Lease {
	return queue.Lease{Owner: w.Owner, Version: w.Version, Term: w.Term, Released: w.Released, Data: w.Data,
		Duration: time.Duration(w.DurationMilliseconds) * time.Millisecond}
}

type (
	readLeaseRequest  struct{ Name string }
	readLeaseResponse struct{ Lease leaseWire }
)

type swapLeaseRequest struct {
	Name string
	// OldVersion is the version to replace; "" if no lease is stored.
	OldVersion string
	Next       *leaseWire `required:"true"`
}

type swapLeaseResponse struct {
	Won     bool
	Current leaseWire
}

// maxLease prevents an overflow.
const maxLease = 366 * 24 * time.Hour

type runWire struct {
	ID             string `json:"Id"`
	Task           string
	AtMilliseconds *int64 `required:"true"`
	Lease          string
	Term           int64
}

func (w *runWire) toRun(x *exchange) (registry.Run, *registry.Runs, error) {
	runs, err := runsOf(x, w.Lease, w.Term)
	return registry.Run{ID: w.ID, Task: w.Task, ScheduledAt: time.UnixMilli(*w.AtMilliseconds), Manual: w.Task == ""}, runs, err
}

func runsOf(x *exchange, lease string, term int64) (*registry.Runs, error) {
	err := registry.Fence{Lease: lease, Term: term}.Check()
	return registry.NewRuns(x.broker.Registry(), registry.Scope{Lease: lease}), err
}

type enqueueRequest struct {
	Queue string `required:"true"`
	runWire
	Message *outgoing `required:"true"`
}

type enqueueResponse struct {
	MessageID      string `json:"MessageId"`
	SequenceNumber string
	Already        bool
}

type (
	lastRunsRequest  struct{ Tasks []string }
	lastRunsResponse struct{ Last map[string]int64 } // Unix milliseconds by task
)

type sinceRunsRequest struct {
	Lease string
	Term  int64
	// From is in Unix milliseconds, by task.
	From map[string]int64
	// Schedules identifies each task's schedule. Clients that do not compare schedules omit it.
	Schedules map[string]string `json:",omitempty"`
}

type sinceRunsResponse struct {
	Since map[string]int64
	// From omits tasks whose start is unknown. Earlier servers omit it.
	From map[string]int64 `json:",omitempty"`
}

type skipRunRequest struct {
	runWire
	// IDs are the IDs of the runs to look up. Earlier clients omit them.
	IDs []string `json:"Ids,omitempty"`
}

type skipRunResponse struct {
	Skipped bool
	// Made maps run IDs to message IDs.
	Made map[string]string `json:",omitempty"`
}

type enqueuedRequest struct {
	ID string `json:"Id"`
	// Clients that do not compare paths omit Path.
	Path *string `json:",omitzero"`
}

type enqueuedResponse struct {
	Enqueued bool `json:"Fired"`
}

type setPausedRequest struct {
	Task, Reason string
	Paused       *bool `required:"true"`
}

type (
	setPausedResponse struct{ Paused bool }
	pausedResponse    struct{ Paused map[string]string }
)

type writeArchiveRequest struct {
	Name, Upload string
	Offset, Size int64
	Data         []byte
}

type readArchiveRequest struct {
	Name   string
	Offset int64
}

type readArchiveResponse struct {
	Size int64
	Data []byte
}

type (
	deleteArchiveRequest struct{ Name string }
	archiveResponse      struct{ Done bool }
)

// Archives stores archives in chunks, for the instances that share the registry. Package archives describes the
// methods.
type Archives interface {
	WriteArchive(ctx context.Context, name, upload string, offset, size int64, data []byte) error
	ReadArchive(ctx context.Context, name string, offset int64) (data []byte, size int64, err error)
	DeleteArchive(ctx context.Context, name string) error
}

var errNoArchives = queue.Errorf(queue.CodeUnsupportedOperation, "This server stores no archives.")

func archivesOf(x *exchange) (Archives, error) {
	if x.h.archives == nil {
		return nil, errNoArchives
	}
	return x.h.archives, nil
}

// For compatibility, scheduled runs are "fires" on the wire.
func registryActions() map[string]action {
	return map[string]action{
		"ReadLease":     newAction(readLease),
		"SwapLease":     newAction(swapLease),
		"Fire":          newAction(enqueueRun),
		"LastFires":     newAction(lastRuns),
		"SinceRuns":     newAction(taskTimes),
		"SkipFire":      newAction(skipRuns),
		"Fired":         newAction(isEnqueued),
		"SetPaused":     newAction(setPaused),
		"WriteArchive":  newAction(writeArchive),
		"ReadArchive":   newAction(readArchive),
		"DeleteArchive": newAction(deleteArchive),
		"Paused":        newAction(pausedTasks),
	}
}

func unscopedRuns(x *exchange) *registry.Runs {
	return registry.NewRuns(x.broker.Registry(), registry.Scope{})
}

func swapLease(x *exchange, in *swapLeaseRequest) (*swapLeaseResponse, error) {
	if in.Next.DurationMilliseconds > maxLease.Milliseconds() {
		return nil, invalid(in.Next.DurationMilliseconds, "DurationMilliseconds", "A lease lasts at most a year.")
	}
	won, current, err := registry.NewLeases(x.broker.Registry()).Swap(x.ctx, in.Name,
		queue.Lease{Version: in.OldVersion}, in.Next.lease())
	return &swapLeaseResponse{won, toWire(current)}, err
}

func enqueueRun(x *exchange, in *enqueueRequest) (*enqueueResponse, error) {
	run, runs, err := in.toRun(x)
	if err != nil {
		return nil, err
	}
	run.Queue = in.Queue
	if run.Message, err = in.Message.message(); err != nil {
		return nil, err
	}
	run.Path = (&queue.Message{Attributes: run.Message.Attributes}).Attribute(queue.AttributePath)
	result, err := runs.Enqueue(x.ctx, in.Term, run)
	return &enqueueResponse{result.Sent.ID, result.Sent.SequenceNumber, result.Already}, err
}

func lastRuns(x *exchange, in *lastRunsRequest) (*lastRunsResponse, error) {
	rows, err := x.broker.Registry().Read(x.ctx, registry.KindTask, in.Tasks...)
	last := map[string]int64{}
	for _, row := range rows {
		if row.Fields != nil {
			last[row.Key] = registry.TimesOf(row).UpTo.UnixMilli()
		}
	}
	return &lastRunsResponse{last}, err
}

func taskTimes(x *exchange, in *sinceRunsRequest) (*sinceRunsResponse, error) {
	runs, err := runsOf(x, in.Lease, in.Term)
	if err != nil {
		return nil, err
	}
	starts := make(map[string]registry.Start, len(in.From))
	for task, at := range in.From {
		starts[task] = registry.Start{At: time.UnixMilli(at), Schedule: in.Schedules[task]}
	}

	known, err := runs.Since(x.ctx, in.Term, starts)
	if err != nil {
		return nil, err
	}
	out := &sinceRunsResponse{Since: map[string]int64{}, From: map[string]int64{}}
	for task, times := range known {
		out.Since[task] = times.UpTo.UnixMilli()
		if !times.From.IsZero() {
			out.From[task] = times.From.UnixMilli()
		}
	}
	return out, nil
}

func skipRuns(x *exchange, in *skipRunRequest) (*skipRunResponse, error) {
	last, runs, err := in.toRun(x)
	if err != nil {
		return nil, err
	}
	last.Manual = false // only scheduled runs can be skipped, so require a task
	var all []registry.Run
	for _, id := range in.IDs {
		all = append(all, registry.Run{ID: id})
	}

	found, err := runs.Skip(x.ctx, in.Term, append(all, last))
	made := map[string]string{}
	for _, id := range in.IDs {
		if run, ok := found[id]; ok {
			made[id] = run.MessageID
		}
	}
	return &skipRunResponse{Skipped: true, Made: made}, err
}

func isEnqueued(x *exchange, in *enqueuedRequest) (*enqueuedResponse, error) {
	stored, err := x.broker.Registry().Read(x.ctx, registry.KindRun, in.ID)
	if err != nil || in.Path == nil {
		return &enqueuedResponse{err == nil && stored[0].Fields != nil}, err
	}
	known, err := unscopedRuns(x).Known(x.ctx, in.ID, *in.Path)
	return &enqueuedResponse{known}, err
}

func setPaused(x *exchange, in *setPausedRequest) (*setPausedResponse, error) {
	return &setPausedResponse{*in.Paused}, unscopedRuns(x).SetPaused(x.ctx, in.Task, in.Reason, *in.Paused)
}

func writeArchive(x *exchange, in *writeArchiveRequest) (*archiveResponse, error) {
	all, err := archivesOf(x)
	if err == nil {
		err = all.WriteArchive(x.ctx, in.Name, in.Upload, in.Offset, in.Size, in.Data)
	}
	return &archiveResponse{true}, err
}

func readArchive(x *exchange, in *readArchiveRequest) (*readArchiveResponse, error) {
	all, err := archivesOf(x)
	if err != nil {
		return nil, err
	}
	data, size, err := all.ReadArchive(x.ctx, in.Name, in.Offset)
	return &readArchiveResponse{size, data}, err
}

func deleteArchive(x *exchange, in *deleteArchiveRequest) (*archiveResponse, error) {
	all, err := archivesOf(x)
	if err == nil {
		err = all.DeleteArchive(x.ctx, in.Name)
	}
	return &archiveResponse{true}, err
}

func readLease(x *exchange, in *readLeaseRequest) (*readLeaseResponse, error) {
	lease, err := registry.NewLeases(x.broker.Registry()).Read(x.ctx, in.Name)
	return &readLeaseResponse{toWire(lease)}, err
}

func pausedTasks(x *exchange, _ *struct{}) (*pausedResponse, error) {
	reasons, err := unscopedRuns(x).Paused(x.ctx)
	return &pausedResponse{reasons}, err
}
