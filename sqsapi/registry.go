package sqsapi

import (
	"context"
	"maps"
	"time"

	"tendril/broker"
	"tendril/queue"
)

// registryPrefix begins the targets of the registry's actions: what several
// instances that share this endpoint agree on. They are no part of SQS, and
// the prefix, which is theirs alone, tells their clients whether it is this
// server that answers.
const registryPrefix = "Tendril_20261120."

// registryActions returns the actions under registryPrefix, by name.
func registryActions() map[string]action {
	all := map[string]action{
		"Fire":      typed((*Handler).enqueue),
		"LastFires": typed((*Handler).lastRuns),
		"Paused":    typed((*Handler).paused),
		"ReadLease": typed((*Handler).readLease),
		"SetPaused": typed((*Handler).setPaused),
		"SwapLease": typed((*Handler).swapLease),
	}
	maps.Copy(all, accountActions())
	return all
}

// leaseWire is a lease on the wire. Its field names are part of the protocol.
type leaseWire struct {
	Owner                string
	Version              string
	Term                 int64
	DurationMilliseconds int64
	Released             bool
	Data                 string
}

func toWire(l queue.Lease) *leaseWire {
	return &leaseWire{l.Owner, l.Version, l.Term, l.Duration.Milliseconds(), l.Released, l.Data}
}

func (w *leaseWire) lease() queue.Lease {
	return queue.Lease{
		Owner: w.Owner, Version: w.Version, Term: w.Term,
		Duration: time.Duration(w.DurationMilliseconds) * time.Millisecond, Released: w.Released, Data: w.Data,
	}
}

type readLeaseRequest struct{ Name string }

// Responses have pointers where a client has to tell an answer of this
// server from any other JSON: no field is ever left out.
type readLeaseResponse struct{ Lease *leaseWire }

type swapLeaseRequest struct {
	Name string
	// OldVersion is the version to replace; "" for nothing stored.
	OldVersion string
	Next       *leaseWire
}

type swapLeaseResponse struct {
	Won     *bool
	Current *leaseWire
}

type enqueueRequest struct {
	Queue string // its name
	ID    string `json:"Id"`
	Task  string
	// AtMilliseconds counts from the beginning of 1970.
	AtMilliseconds *int64
	Lease          string
	Term           int64
	Message        *outgoing
}

type enqueueResponse struct {
	MessageID      string `json:"MessageId"`
	SequenceNumber string
	Already        *bool
}

func (r *enqueueResponse) messages() int {
	if *r.Already {
		return 0
	}
	return 1
}

type lastRunsRequest struct{ Tasks []string }

// lastRunsResponse holds Unix milliseconds by task.
type lastRunsResponse struct{ Last map[string]int64 }

type setPausedRequest struct {
	Task, Reason string
	Paused       *bool
}

// setPausedResponse repeats the request's field.
type setPausedResponse struct{ Paused *bool }

type pausedRequest struct{}

// pausedResponse holds the reasons by task.
type pausedResponse struct{ Paused map[string]string }

func (h *Handler) readLease(ctx context.Context, _ caller, in *readLeaseRequest) (*readLeaseResponse, error) {
	lease, err := h.broker.Registry().Read(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &readLeaseResponse{toWire(lease)}, nil
}

func (h *Handler) swapLease(ctx context.Context, _ caller, in *swapLeaseRequest) (*swapLeaseResponse, error) {
	if in.Next == nil {
		return nil, missing("Next")
	}
	if most := int64(maxLease / time.Millisecond); in.Next.DurationMilliseconds > most {
		return nil, invalid(in.Next.DurationMilliseconds, "DurationMilliseconds", "A lease lasts at most a year.")
	}
	won, current, err := h.broker.Registry().Swap(ctx, in.Name, queue.Lease{Version: in.OldVersion}, in.Next.lease())
	if err != nil {
		return nil, err
	}
	return &swapLeaseResponse{&won, toWire(current)}, nil
}

// maxLease keeps a duration from overflowing.
const maxLease = 366 * 24 * time.Hour

func (h *Handler) enqueue(ctx context.Context, _ caller, in *enqueueRequest) (*enqueueResponse, error) {
	switch {
	case in.Queue == "":
		return nil, missing("Queue")
	case in.AtMilliseconds == nil:
		return nil, missing("AtMilliseconds")
	case in.Message == nil:
		return nil, missing("Message")
	}
	// A trace id in the request's header is the caller's, not the message's.
	m, _, err := in.Message.prepare(caller{})
	if err != nil {
		return nil, err
	}
	sent, already, err := h.broker.Registry().Enqueue(ctx, broker.RunRequest{
		Queue: in.Queue, ID: in.ID, Task: in.Task, At: time.UnixMilli(*in.AtMilliseconds), Lease: in.Lease, Term: in.Term,
	}, m)
	if err != nil {
		return nil, err
	}
	return &enqueueResponse{sent.ID, sent.SequenceNumber, &already}, nil
}

func (h *Handler) lastRuns(ctx context.Context, _ caller, in *lastRunsRequest) (*lastRunsResponse, error) {
	last, err := h.broker.Registry().Last(ctx, in.Tasks)
	if err != nil {
		return nil, err
	}
	milli := make(map[string]int64, len(last))
	for task, at := range last {
		milli[task] = at.UnixMilli()
	}
	return &lastRunsResponse{milli}, nil
}

func (h *Handler) setPaused(ctx context.Context, _ caller, in *setPausedRequest) (*setPausedResponse, error) {
	if in.Paused == nil {
		return nil, missing("Paused")
	}
	if err := h.broker.Registry().SetPaused(ctx, in.Task, in.Reason, *in.Paused); err != nil {
		return nil, err
	}
	return &setPausedResponse{in.Paused}, nil
}

func (h *Handler) paused(ctx context.Context, _ caller, _ *pausedRequest) (*pausedResponse, error) {
	reasons, err := h.broker.Registry().Paused(ctx)
	if err != nil {
		return nil, err
	}
	return &pausedResponse{reasons}, nil
}
