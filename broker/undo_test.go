package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func TestReceiveWithoutContentsDoesNotCount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		fifo       bool
		visibility time.Duration
		stored     bool // the receive is on disk, and the broker is reopened
	}{
		{name: "standard queue", visibility: time.Minute},
		{name: "immediately visible"},
		{name: "stored", visibility: time.Minute, stored: true},
		{name: "FIFO attempt", fifo: true, visibility: time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := openTest(t, nil)
				q, request := queueWithMessage(t, b, tt.fifo, tt.visibility)
				receiveFromClosedStore(t, q, request, tt.stored)
				if tt.stored {
					q = reopen(t, b).Queue("work")
				}
				got, err := q.Receive(t.Context(), request)
				if len(got) != 1 || got[0].ReceiveCount != 1 {
					t.Errorf("received %+v, %v; want one message with receive count 1", got, err)
				}
			})
		})
	}
}

func TestRepeatedReceiveWithoutContentsStaysInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		q, request := queueWithMessage(t, b, true, time.Minute)
		first, err := q.Receive(t.Context(), request)
		if len(first) != 1 {
			t.Fatal(first, err)
		}
		receiveFromClosedStore(t, q, request, false)
		again, err := q.Receive(t.Context(), request)
		if len(again) != 1 || again[0].ReceiptHandle != first[0].ReceiptHandle {
			t.Errorf("received %+v, %v; want the same receipt handle as before", again, err)
		}
	})
}

func queueWithMessage(t *testing.T, b *Broker, fifo bool, visibility time.Duration) (*Queue, queue.ReceiveRequest) {
	t.Helper()
	name := "work"
	var attributes map[string]string
	message := queue.Outgoing{Body: "had"}
	request := queue.ReceiveRequest{Max: 10, Wait: new(time.Duration), Visibility: &visibility}
	if fifo {
		name = "work.fifo"
		attributes = map[string]string{"FifoQueue": "true"}
		message.GroupID = "g"
		message.DedupID = "d"
		request.AttemptID = "a"
	}
	q := create(t, b, name, attributes)
	send(t, q, message)
	return q, request
}

func receiveFromClosedStore(t *testing.T, q *Queue, request queue.ReceiveRequest, stored bool) {
	t.Helper()
	r, err := q.newReceive(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.poll(); err != nil || len(r.result.messages) != 1 {
		t.Fatal(r.result.messages, err)
	}
	r.result.messages[0].content = nil
	if stored {
		storeReceives(t, q)
	}

	closed := openTest(t, nil)
	closeBroker(t, closed)
	open := q.b.store.Load()
	q.b.store.Store(closed.store.Load())
	_, err = r.deliver(r.result.messages)
	q.b.store.Store(open)
	if err == nil {
		t.Fatal("contents read from a closed store")
	}
}
