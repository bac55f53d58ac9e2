package queuetest_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"

	"tendril/broker"
	"tendril/internal/sqsapi"
	"tendril/queuetest"
)

// The suite runs in process with virtual time, and over the SQS protocol through the adapter for Amazon SQS. A
// failure only in the second run is a fault in the protocol.

func TestBrokerConforms(t *testing.T) {
	t.Parallel()
	suite := queuetest.Suite{Virtual: true, UncountsUnread: true,
		Start: func(t testing.TB) queuetest.Server { return brokerServer{openBroker(t)} }}
	suite.Run(t)
}

func TestSQSOverBrokerConforms(t *testing.T) {
	t.Parallel()
	listener := httptest.NewServer(sqsapi.New(openBroker(t), nil))
	t.Cleanup(listener.Close)
	server := openSQS(t, listener.URL, listener.URL+"/000000000000/")
	suite := queuetest.Suite{Start: func(testing.TB) queuetest.Server { return server }}
	suite.Run(t)
}

func openBroker(t testing.TB) *broker.Broker {
	b, err := broker.Open(t.TempDir(), &broker.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

type brokerServer struct{ *broker.Broker }

func (s brokerServer) Create(ctx context.Context, name string, attrs map[string]string) (queuetest.Queue, error) {
	return s.Handle(name), s.CreateQueue(ctx, name, attrs, nil)
}

func (s brokerServer) Handle(name string) queuetest.Queue {
	return brokerQueue{s.Queue(name), s.Broker}
}

type brokerQueue struct {
	*broker.Queue
	b *broker.Broker
}

func (q brokerQueue) Attributes(context.Context) (map[string]string, error) {
	return q.b.Attributes(q.Name())
}

func (q brokerQueue) SetAttributes(ctx context.Context, attrs map[string]string) error {
	return q.b.SetAttributes(ctx, q.Name(), attrs)
}

func (q brokerQueue) Purge(ctx context.Context) error {
	_, err := q.b.PurgeQueue(ctx, q.Name())
	return err
}
