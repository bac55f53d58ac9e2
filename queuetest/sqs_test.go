package queuetest_test

import (
	"context"
	"testing"

	"tendril/internal/aws"
	"tendril/queuetest"
)

type sqsServer struct {
	t         testing.TB
	sqs       *aws.SQS
	queueBase string
}

func openSQS(t *testing.T, endpoint, queueBase string) sqsServer {
	t.Helper()
	s, err := aws.OpenSQS(t.Context(), &aws.Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return sqsServer{t, s, queueBase}
}

func (s sqsServer) Create(ctx context.Context, name string, attrs map[string]string) (queuetest.Queue, error) {
	q, err := s.sqs.Create(ctx, name, attrs, nil)
	if err != nil {
		return nil, err
	}
	return q, nil
}

func (s sqsServer) Handle(name string) queuetest.Queue {
	q, err := s.sqs.Queue(context.Background(), s.queueBase+name)
	if err != nil {
		s.t.Fatal(err)
	}
	return q
}
