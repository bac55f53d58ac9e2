package acceptance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"tendril/broker"
	"tendril/internal/aws"
	"tendril/internal/cron/leader"
	"tendril/internal/cron/periodic"
	"tendril/internal/sqsapi"
	"tendril/queue"
)

// instance is the other process of the leaders' test: it takes part in the
// election and enqueues the ticks when it leads. Its role says where.
type instance struct {
	endpoint, name, queue string
	missedLog             string // the file to which it adds the times that it reports as missed
}

// play plays the role, until TERM; known is false when there is no such role.
func play(role string) (known bool, err error) {
	i := instance{
		endpoint: os.Getenv("ACCEPTANCE_ENDPOINT"), name: os.Getenv("ACCEPTANCE_NAME"),
		queue: os.Getenv("ACCEPTANCE_QUEUE"), missedLog: os.Getenv("ACCEPTANCE_MISSED"),
	}
	switch role {
	case "observer":
		return true, observer()
	case "app":
		return true, serveApp()
	case "scheduler":
		registry := sqsapi.NewRegistryClient(i.endpoint,
			sqsapi.Identity{Token: os.Getenv("ACCEPTANCE_REGISTRY_TOKEN")}, nil)
		return true, i.run(registry, func(periodic.Leadership) periodic.Registry { return shared{registry} })
	case "amazon scheduler":
		table, sender, err := openAmazon(i.queue)
		if err != nil {
			return true, err
		}
		return true, i.run(table, func(lead periodic.Leadership) periodic.Registry {
			return periodic.NewClaims(table.Runs(leaseName), sender, lead)
		})
	}
	return false, nil
}

func (i instance) run(store leader.Store, registry func(periodic.Leadership) periodic.Registry) error {
	elector, err := leader.New(store,
		leader.Options{Name: leaseName, Owner: i.name, Lease: testLease, Renew: testRenew, CallTimeout: testCall})
	if err != nil {
		return err
	}
	tasks := &periodic.File{Tasks: []periodic.Task{{Name: tickTask, URL: "/tick", Schedule: periodic.Every(time.Second),
		Missed: periodic.MissedAll}}}
	scheduler := periodic.New(tasks, elector, registry(elector), periodic.Options{
		Queue: i.queue, CallTimeout: testCall, Events: periodic.Events{Skipped: i.skipped},
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	done := make(chan error, 2)
	go func() { done <- elector.Run(ctx) }()
	go func() { done <- scheduler.Run(ctx) }()
	return errors.Join(<-done, <-done)
}

// skipped notes each time that was reported as missed.
func (i instance) skipped(s periodic.Skipped) {
	if s.Reason != periodic.ReasonMissed {
		return
	}
	var lines strings.Builder
	for at := s.From; !at.After(s.To); at = at.Add(time.Second) {
		fmt.Fprintln(&lines, at.Unix())
	}
	f, err := os.OpenFile(i.missedLog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(lines.String())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, i.name, err)
	}
}

// shared is the registry of a `tendril serve`.
type shared struct{ *sqsapi.RegistryClient }

func (s shared) Since(ctx context.Context, term int64, starts map[string]periodic.Start) (
	map[string]queue.TaskTimes, error) {
	return s.RegistryClient.SinceUnder(ctx, leaseName, term, times(starts), nil)
}

// times are those from which tasks count.
func times(starts map[string]periodic.Start) map[string]time.Time {
	from := map[string]time.Time{}
	for task, start := range starts {
		from[task] = start.At
	}
	return from
}

func (s shared) Enqueue(ctx context.Context, term int64, f periodic.ScheduledRun) (periodic.EnqueueResult, error) {
	sent, already, err := s.RegistryClient.Enqueue(ctx, s.request(term, f), f.Message)
	return periodic.EnqueueResult{Sent: sent, Already: already}, err
}

func (s shared) Skip(ctx context.Context, term int64, runs []periodic.ScheduledRun) (map[string]periodic.Claim, error) {
	ids := make([]string, len(runs))
	for i := range runs {
		ids[i] = runs[i].ID
	}
	made, err := s.RegistryClient.Skip(ctx, s.request(term, runs[len(runs)-1]), ids)
	found := map[string]periodic.Claim{}
	for id, message := range made {
		found[id] = periodic.Claim{Settled: true, MessageID: message}
	}
	return found, err
}

func (s shared) request(term int64, f periodic.ScheduledRun) broker.RunRequest {
	return broker.RunRequest{Queue: f.Queue, ID: f.ID, Task: f.Task, At: f.ScheduledAt, Lease: leaseName, Term: term}
}

// openAmazon opens table and queue where the SDK's variables say.
func openAmazon(name string) (*aws.Table, *sender, error) {
	table, err := aws.OpenTable(context.Background(), amazonTable, nil)
	if err != nil {
		return nil, nil, err
	}
	sqs, err := aws.OpenSQS(context.Background(), nil)
	if err != nil {
		return nil, nil, err
	}
	return table, &sender{sqs: sqs, name: name}, nil
}

// sender sends to a queue of Amazon's.
type sender struct {
	sqs  *aws.SQS
	name string
}

func (s *sender) Send(ctx context.Context, _ string, m queue.Outgoing) (queue.Sent, error) {
	q, err := s.sqs.Queue(ctx, s.name)
	if err != nil {
		return queue.Sent{}, errors.Join(periodic.ErrNotSent, err)
	}
	sent, err := q.SendOnce(ctx, m)
	return sent, errors.Join(err, sent.Err)
}
