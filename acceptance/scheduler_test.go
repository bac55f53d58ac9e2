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

	"tendril/internal/aws"
	"tendril/internal/cron/leader"
	"tendril/internal/cron/periodic"
	"tendril/internal/registry"
	"tendril/internal/sqsapi"
	"tendril/queue"
)

type instance struct {
	endpoint, name, queue string
	missedLog             string
}

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
		client := sqsapi.NewRegistryClient(i.endpoint, scope,
			sqsapi.Identity{Token: os.Getenv("ACCEPTANCE_REGISTRY_TOKEN")}, nil)
		return true, i.run(client, func(periodic.Leadership) periodic.Registry { return client })
	case "amazon scheduler":
		table, sender, err := openAmazon(i.queue)
		if err != nil {
			return true, err
		}
		return true, i.run(registry.NewLeases(table), func(lead periodic.Leadership) periodic.Registry {
			return registry.NewSentRuns(table, scope, sender, lead)
		})
	}
	return false, nil
}

func (i instance) run(store leader.Store, runs func(periodic.Leadership) periodic.Registry) error {
	elector, err := leader.New(store,
		leader.Options{Name: leaseName, Owner: i.name, Lease: testLease, Renew: testRenew, CallTimeout: testCall})
	if err != nil {
		return err
	}
	tasks := &periodic.File{Tasks: []periodic.Task{{Name: tickTask, URL: "/tick", Schedule: periodic.Every(time.Second),
		Missed: periodic.MissedAll}}}
	scheduler := periodic.New(tasks, elector, runs(elector), periodic.Options{
		Queue: i.queue, CallTimeout: testCall, Events: periodic.Events{Skipped: i.skipped},
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	done := make(chan error, 2)
	go func() { done <- elector.Run(ctx) }()
	go func() { done <- scheduler.Run(ctx) }()
	return errors.Join(<-done, <-done)
}

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

var scope = registry.Scope{Name: leaseName, Lease: leaseName}

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

type sender struct {
	sqs  *aws.SQS
	name string
}

func (s *sender) Send(ctx context.Context, _ string, m queue.Outgoing) (queue.Sent, error) {
	q, err := s.sqs.Queue(ctx, s.name)
	if err != nil {
		return queue.Sent{}, errors.Join(registry.ErrNotSent, err)
	}
	sent, err := q.SendOnce(ctx, m)
	return sent, errors.Join(err, sent.Err)
}
