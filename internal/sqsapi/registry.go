package sqsapi

import (
	"time"

	"tendril/broker"
	"tendril/queue"
)

// registryPrefix begins the targets of the registry's actions: what several
// instances that share this endpoint agree on. They are no part of SQS, and
// the prefix, which is theirs alone, tells their clients whether it is this
// server that answers.
const registryPrefix = "Tendril_20261120."

// The requests and responses are those of the client too. No field of a response is missing but
// those that may be omitted: so the client tells an answer of this server from any other JSON.

// leaseWire is a lease on the wire. Its field names are part of the protocol.
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
	// OldVersion is the version to replace; "" for nothing stored.
	OldVersion string
	Next       *leaseWire
}

type swapLeaseResponse struct {
	Won     bool
	Current leaseWire
}

// maxLease keeps a duration from overflowing.
const maxLease = 366 * 24 * time.Hour

// runWire is what identifies a run on the wire, and its fence.
type runWire struct {
	ID   string `json:"Id"`
	Task string
	// AtMilliseconds counts from the beginning of 1970.
	AtMilliseconds *int64
	Lease          string
	Term           int64
}

func toRunWire(r broker.RunRequest) runWire {
	w := runWire{ID: r.ID, Task: r.Task, Lease: r.Lease, Term: r.Term}
	if !r.At.IsZero() {
		w.AtMilliseconds = new(r.At.UnixMilli())
	}
	return w
}

func (w *runWire) run(queue string) (broker.RunRequest, error) {
	if w.AtMilliseconds == nil {
		return broker.RunRequest{}, missing("AtMilliseconds")
	}
	return broker.RunRequest{Queue: queue, ID: w.ID, Task: w.Task, At: time.UnixMilli(*w.AtMilliseconds), Lease: w.Lease,
		Term: w.Term}, nil
}

type enqueueRequest struct {
	Queue string // its name
	runWire
	Message *outgoing
}

type enqueueResponse struct {
	MessageID      string `json:"MessageId"`
	SequenceNumber string
	Already        bool
}

func (r *enqueueResponse) messages() int {
	if r.Already {
		return 0
	}
	return 1
}

type (
	lastRunsRequest  struct{ Tasks []string }
	lastRunsResponse struct{ Last map[string]int64 } // Unix milliseconds by task
)

type sinceRunsRequest struct {
	Lease string
	Term  int64
	// From holds Unix milliseconds by task.
	From map[string]int64
	// Schedules are texts by task; absent from clients that compare none.
	Schedules map[string]string `json:",omitempty"`
}

// sinceRunsResponse holds Unix milliseconds by task.
type sinceRunsResponse struct {
	Since map[string]int64
	// From lacks the tasks of which that is not known, and is absent from servers of an older version.
	From map[string]int64 `json:",omitempty"`
}

func newSinceRunsResponse(known map[string]queue.TaskTimes) *sinceRunsResponse {
	r := &sinceRunsResponse{make(map[string]int64, len(known)), make(map[string]int64, len(known))}
	for task, times := range known {
		r.Since[task] = times.UpTo.UnixMilli()
		if !times.From.IsZero() {
			r.From[task] = times.From.UnixMilli()
		}
	}
	return r
}

func (r *sinceRunsResponse) known() map[string]queue.TaskTimes {
	since, from := fromMilli(r.Since), fromMilli(r.From)
	known := make(map[string]queue.TaskTimes, len(since))
	for task, at := range since {
		known[task] = queue.TaskTimes{UpTo: at, From: from[task]}
	}
	return known
}

func toMilli(times map[string]time.Time) map[string]int64 {
	milli := make(map[string]int64, len(times))
	for name, at := range times {
		milli[name] = at.UnixMilli()
	}
	return milli
}

func fromMilli(milli map[string]int64) map[string]time.Time {
	times := make(map[string]time.Time, len(milli))
	for name, at := range milli {
		times[name] = time.UnixMilli(at).UTC()
	}
	return times
}

type skipRunRequest struct {
	runWire
	// IDs are runs to look for; absent from clients that look for none.
	IDs []string `json:"Ids,omitempty"`
}

type skipRunResponse struct {
	Skipped bool
	// Made holds the messages by run; absent when there are none.
	Made map[string]string `json:",omitempty"`
}

type enqueuedRequest struct {
	ID string `json:"Id"`
	// Path is absent from clients that compare none.
	Path *string `json:",omitzero"`
}

type enqueuedResponse struct {
	Enqueued bool `json:"Fired"`
}

type setPausedRequest struct {
	Task, Reason string
	Paused       *bool
}

type (
	setPausedResponse struct{ Paused bool }              // that of the request
	pausedResponse    struct{ Paused map[string]string } // the reasons by task
)

// registryActions returns the actions under registryPrefix, by name.
func registryActions() map[string]action {
	return map[string]action{
		"ReadLease": typed(func(x *actionCall, in *readLeaseRequest) (*readLeaseResponse, error) {
			lease, err := x.broker.Registry().Read(x.ctx, in.Name)
			return &readLeaseResponse{toWire(lease)}, err
		}),
		"SwapLease": typed(func(x *actionCall, in *swapLeaseRequest) (*swapLeaseResponse, error) {
			if in.Next == nil {
				return nil, missing("Next")
			}
			if in.Next.DurationMilliseconds > maxLease.Milliseconds() {
				return nil, invalid(in.Next.DurationMilliseconds, "DurationMilliseconds", "A lease lasts at most a year.")
			}
			won, current, err := x.broker.Registry().Swap(x.ctx, in.Name, queue.Lease{Version: in.OldVersion}, in.Next.lease())
			return &swapLeaseResponse{won, toWire(current)}, err
		}),
		"Fire": typed(func(x *actionCall, in *enqueueRequest) (*enqueueResponse, error) {
			if in.Queue == "" {
				return nil, missing("Queue")
			}
			run, err := in.run(in.Queue)
			if err != nil {
				return nil, err
			}
			if in.Message == nil {
				return nil, missing("Message")
			}
			// A trace id in the request's header is the caller's, not the message's.
			m, _, err := in.Message.prepare("")
			if err != nil {
				return nil, err
			}
			sent, already, err := x.broker.Registry().Enqueue(x.ctx, run, m)
			return &enqueueResponse{sent.ID, sent.SequenceNumber, already}, err
		}),
		"LastFires": typed(func(x *actionCall, in *lastRunsRequest) (*lastRunsResponse, error) {
			last, err := x.broker.Registry().Last(x.ctx, in.Tasks)
			return &lastRunsResponse{toMilli(last)}, err
		}),
		"SinceRuns": typed(func(x *actionCall, in *sinceRunsRequest) (*sinceRunsResponse, error) {
			known, err := x.broker.Registry().SinceUnder(x.ctx, in.Lease, in.Term, fromMilli(in.From), in.Schedules)
			return newSinceRunsResponse(known), err
		}),
		"SkipFire": typed(func(x *actionCall, in *skipRunRequest) (*skipRunResponse, error) {
			run, err := in.run("")
			if err != nil {
				return nil, err
			}
			made, err := x.broker.Registry().Skip(x.ctx, run, in.IDs)
			return &skipRunResponse{true, made}, err
		}),
		"Fired": typed(func(x *actionCall, in *enqueuedRequest) (_ *enqueuedResponse, err error) {
			found, r := false, x.broker.Registry()
			if in.Path == nil {
				found, err = r.Enqueued(x.ctx, in.ID)
			} else {
				found, err = r.EnqueuedTo(x.ctx, in.ID, *in.Path)
			}
			return &enqueuedResponse{found}, err
		}),
		"SetPaused": typed(func(x *actionCall, in *setPausedRequest) (*setPausedResponse, error) {
			if in.Paused == nil {
				return nil, missing("Paused")
			}
			return &setPausedResponse{*in.Paused}, x.broker.Registry().SetPaused(x.ctx, in.Task, in.Reason, *in.Paused)
		}),
		"Paused": typed(func(x *actionCall, _ *struct{}) (*pausedResponse, error) {
			reasons, err := x.broker.Registry().Paused(x.ctx)
			return &pausedResponse{reasons}, err
		}),
	}
}
