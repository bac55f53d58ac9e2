package fleet

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"tendril/internal/autoscale"
)

func TestCloseClosesTheConnectionsToEveryService(t *testing.T) {
	closed := make(chan string, 10)
	serve := func(name string) string {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v4/task" {
				fmt.Fprint(w, task, `,"ServiceName":"web"}`)
				return
			}
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			if _, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); action == "DescribeServices" {
				fmt.Fprint(w, `{"services":[{"status":"ACTIVE","runningCount":3,"desiredCount":3}],"failures":[]}`)
				return
			}
			fmt.Fprint(w, `{}`)
		}))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				closed <- name
			}
		}
		server.Start()
		t.Cleanup(server.Close)
		return server.URL
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-west-1",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, metadataVariable: serve("the agent") + "/v4",
		"AWS_ENDPOINT_URL_CLOUDWATCH": serve("CloudWatch"), "AWS_ENDPOINT_URL_ECS": serve("ECS")} {
		t.Setenv(name, value)
	}
	f, err := Open(t.Context(), Options{Namespace: "jobs", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.publish(t.Context(), []autoscale.Metric{{Name: "BacklogPerInstance", Unit: "Count", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	if n, err := f.countInstances(t.Context()); n != 3 || err != nil {
		t.Fatal(n, err)
	}

	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{"CloudWatch": true, "ECS": true}
	limit := time.After(10 * time.Second) // shorter than the idle timeout of connections
	for len(open) > 0 {
		select {
		case name := <-closed:
			delete(open, name)
		case <-limit:
			t.Fatalf("the connections to %v are open", open)
		}
	}
}
