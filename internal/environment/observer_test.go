package environment

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestConnectionsToCloudWatchAreClosedAtTheEnd(t *testing.T) {
	localKeys(t)
	asked, closed := make(chan struct{}, 100), make(chan struct{}, 100)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Write([]byte("{}"))
		asked <- struct{}{}
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_CLOUDWATCH", server.URL)
	r := run(t, map[string]string{"target": "http://127.0.0.1:1/", "cloudwatch": "on", "metrics-interval": "1s"}, nil)
	<-asked
	if err := r.end(); err != nil {
		t.Error(err)
	}
	select {
	case <-closed:
	case <-time.After(10 * time.Second): // shorter than the idle timeout of connections
		t.Error("a connection is open")
	}
}
