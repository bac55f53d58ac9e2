package sqsapi

import (
	"context"
	"time"

	"tendril/broker"
)

// accountActions are those of the registry that account for times of tasks
// without a message.
func accountActions() map[string]action {
	return map[string]action{
		"Fired":     typed((*Handler).enqueued),
		"SinceRuns": typed((*Handler).sinceRuns),
		"SkipFire":  typed((*Handler).skipRuns),
	}
}

type sinceRunsRequest struct {
	Lease string
	Term  int64
	// From holds Unix milliseconds by task.
	From map[string]int64
	// Schedules are texts by task; absent from clients that compare none.
	Schedules map[string]string `json:",omitempty"`
}

// sinceRunsResponse holds Unix milliseconds by task.
type sinceRunsResponse struct{ Since map[string]int64 }

type skipRunRequest struct {
	ID             string `json:"Id"`
	Task           string
	AtMilliseconds *int64
	Lease          string
	Term           int64
	// IDs are runs to look for; absent from clients that look for none.
	IDs []string `json:"Ids,omitempty"`
}

type skipRunResponse struct {
	Skipped *bool
	// Made holds the messages by run; absent when there are none.
	Made map[string]string `json:",omitempty"`
}

type enqueuedRequest struct {
	ID string `json:"Id"`
	// Path is absent from clients that compare none.
	Path *string `json:",omitempty"`
}

type enqueuedResponse struct {
	Enqueued *bool `json:"Fired"`
}

func (h *Handler) sinceRuns(ctx context.Context, _ caller, in *sinceRunsRequest) (*sinceRunsResponse, error) {
	since, err := h.broker.Registry().SinceUnder(ctx, in.Lease, in.Term, fromMilli(in.From), in.Schedules)
	if err != nil {
		return nil, err
	}
	return &sinceRunsResponse{toMilli(since)}, nil
}

func (h *Handler) skipRuns(ctx context.Context, _ caller, in *skipRunRequest) (*skipRunResponse, error) {
	if in.AtMilliseconds == nil {
		return nil, missing("AtMilliseconds")
	}
	req := broker.RunRequest{ID: in.ID, Task: in.Task, At: time.UnixMilli(*in.AtMilliseconds), Lease: in.Lease,
		Term: in.Term}
	made, err := h.broker.Registry().Skip(ctx, req, in.IDs)
	if err != nil {
		return nil, err
	}
	yes := true
	return &skipRunResponse{&yes, made}, nil
}

func (h *Handler) enqueued(ctx context.Context, _ caller, in *enqueuedRequest) (*enqueuedResponse, error) {
	found, err := false, error(nil)
	if in.Path == nil {
		found, err = h.broker.Registry().Enqueued(ctx, in.ID)
	} else {
		found, err = h.broker.Registry().EnqueuedTo(ctx, in.ID, *in.Path)
	}
	if err != nil {
		return nil, err
	}
	return &enqueuedResponse{&found}, nil
}

// SinceUnder is [broker.Registry.SinceUnder].
func (c *RegistryClient) SinceUnder(ctx context.Context, lease string, term int64, from map[string]time.Time,
	schedules map[string]string) (map[string]time.Time, error) {
	texts := []string{lease}
	for task := range from {
		texts = append(texts, task, schedules[task])
	}
	var out sinceRunsResponse
	in := sinceRunsRequest{Lease: lease, Term: term, From: toMilli(from), Schedules: schedules}
	if err := c.call(ctx, "SinceRuns", in, &out, func() bool { return out.Since != nil }, texts...); err != nil {
		return nil, err
	}
	return fromMilli(out.Since), nil
}

// Skip is [broker.Registry.Skip]. A server of an older version looks for no runs.
func (c *RegistryClient) Skip(ctx context.Context, req broker.RunRequest, ids []string) (made map[string]string,
	err error) {
	at := req.At.UnixMilli()
	var out skipRunResponse
	in := skipRunRequest{ID: req.ID, Task: req.Task, AtMilliseconds: &at, Lease: req.Lease, Term: req.Term, IDs: ids}
	texts := append([]string{req.ID, req.Task, req.Lease}, ids...)
	if err := c.call(ctx, "SkipFire", in, &out, func() bool { return out.Skipped != nil }, texts...); err != nil {
		return nil, err
	}
	return out.Made, nil
}

// EnqueuedTo is [broker.Registry.EnqueuedTo].
func (c *RegistryClient) EnqueuedTo(ctx context.Context, id, path string) (bool, error) {
	var out enqueuedResponse
	if err := c.call(ctx, "Fired", enqueuedRequest{id, &path}, &out, func() bool {
		return out.Enqueued != nil
	}, id, path); err != nil {
		return false, err
	}
	return *out.Enqueued, nil
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
