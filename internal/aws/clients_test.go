package aws

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tendril/internal/registry"
	"tendril/queue"
)

type openedClient struct {
	service *service
	close   func()
	call    func() error
}

var clientsByName = map[string]func(t *testing.T) openedClient{
	"SQS": func(t *testing.T) openedClient {
		s := opened(OpenSQS(t.Context(), nil))(t)
		q, err := s.Queue(t.Context(), os.Getenv("AWS_ENDPOINT_URL")+"/123456789012/jobs")
		return openedClient{&s.service, s.Close, func() error {
			_, failed := q.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Wait: noWait})
			return errors.Join(err, failed)
		}}
	},
	"SQS, with the SDK": func(t *testing.T) openedClient {
		s := opened(OpenSQS(t.Context(), nil))(t)
		return openedClient{&s.service, s.Close, func() error { _, err := s.List(t.Context(), ""); return err }}
	},
	"DynamoDB": func(t *testing.T) openedClient {
		table := opened(OpenTable(t.Context(), "registry", nil))(t)
		return openedClient{&table.service, table.Close,
			func() error { _, err := table.Read(t.Context(), registry.KindLease, "l"); return err }}
	},
	"CloudWatch": func(t *testing.T) openedClient {
		c := opened(OpenCloudWatch(t.Context(), nil))(t)
		return openedClient{&c.service, c.Close,
			func() error { return c.PutMetricData(t.Context(), "n", []Datum{{Name: "a", Samples: 1}}) }}
	},
	"Auto Scaling": func(t *testing.T) openedClient {
		a := opened(OpenAutoScaling(t.Context(), nil))(t)
		return openedClient{&a.service, a.Close, func() error { _, err := a.GroupOf(t.Context(), "i-1"); return err }}
	},
	"ECS": func(t *testing.T) openedClient {
		e := opened(OpenECS(t.Context(), nil))(t)
		return openedClient{&e.service, e.Close, func() error { _, err := e.ServiceOf(t.Context(), "c", "t"); return err }}
	},
	"IAM": func(t *testing.T) openedClient {
		i := opened(OpenIAM(t.Context(), nil))(t)
		return openedClient{&i.iam.service, i.Close,
			func() error { return i.call(t.Context(), &i.sts, url.Values{}, &struct{}{}) }}
	},
	"S3": func(t *testing.T) openedClient {
		s := opened(OpenS3(t.Context(), nil))(t)
		return openedClient{&s.service, s.Close, func() error { return s.CheckBucket(t.Context(), "b") }}
	},
	"Lambda": func(t *testing.T) openedClient {
		l := opened(OpenLambda(t.Context(), &LambdaOptions{Function: "resize"}))(t)
		return openedClient{&l.service, l.Close, func() error { _, err := l.Invoke(t.Context(), nil, nil); return err }}
	},
}

func opened[Client any](c Client, err error) func(t *testing.T) Client {
	return func(t *testing.T) Client {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// forEachClient calls test for each kind of client, with a server that counts its requests.
func forEachClient(t *testing.T, test func(t *testing.T, c openedClient, requests *atomic.Int64)) {
	for name, open := range clientsByName {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				io.WriteString(w, "{}")
			}))
			t.Cleanup(server.Close)
			setAWS(t, map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "eu-west-1", "AWS_MAX_ATTEMPTS": "1"})
			c := open(t)
			t.Cleanup(c.close)
			test(t, c, &requests)
		})
	}
}

func TestKeptConnectionThatAcceptsNothingIsReplaced(t *testing.T) {
	forEachClient(t, func(t *testing.T, c openedClient, requests *atomic.Int64) {
		transport := c.service.exchanger.transport
		dial := transport.DialContext
		dials := 0
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			conn, err := dial(ctx, network, address)
			if dials > 1 {
				return conn, err
			}
			return &brokenConn{Conn: conn}, err
		}

		first := c.call()
		before := requests.Load()
		second := c.call()
		if n := requests.Load() - before; n != 1 || dials != 2 || (first == nil) != (second == nil) {
			t.Errorf("%d requests in the second call, over %d connections: %v, then %v", n, dials, first, second)
		}
	})
}

func TestCloseClosesIdleConnections(t *testing.T) {
	forEachClient(t, func(t *testing.T, c openedClient, _ *atomic.Int64) {
		transport := c.service.exchanger.transport
		dial := transport.DialContext
		closed := make(chan struct{})
		transport.IdleConnTimeout = time.Hour
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return closeNotifier{conn, sync.OnceFunc(func() { close(closed) })}, err
		}

		_ = c.call() // the response is not valid for every action
		select {
		case <-closed:
			t.Fatal("the connection was not kept")
		default:
		}
		c.close()
		select {
		case <-closed:
		case <-time.After(time.Minute):
			t.Error("the connection stays open")
		}
	})
}

type closeNotifier struct {
	net.Conn
	notify func()
}

func (c closeNotifier) Close() error {
	c.notify()
	return c.Conn.Close()
}
