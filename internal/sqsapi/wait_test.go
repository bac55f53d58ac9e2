package sqsapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func poll(ctx context.Context, h *Handler) <-chan polled {
	done := make(chan polled, 1)
	go func() {
		began := time.Now()
		w := callContext(ctx, h, "ReceiveMessage", `{"QueueUrl":"jobs","WaitTimeSeconds":20}`)
		done <- polled{w.Code, w.Body.String(), time.Since(began)}
	}()
	return done
}

type polled struct {
	status int
	body   string
	after  time.Duration
}

func TestReceiveWaits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		after time.Duration
		what  func(*testing.T, *Handler, context.CancelFunc)
		want  polled
	}{
		{"until the time is over", 0, nil, polled{200, "{}", 20 * time.Second}},
		{"until the client leaves", 3 * time.Second, func(_ *testing.T, _ *Handler, leave context.CancelFunc) {
			leave()
		}, polled{200, "", 3 * time.Second}},
		{"until the handler stops", 4 * time.Second, func(_ *testing.T, h *Handler, _ context.CancelFunc) {
			h.Stop()
			h.Stop()
		}, polled{200, "{}", 4 * time.Second}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHandler(t, nil)
				mustCall(t, h, "CreateQueue", `{"QueueName":"jobs"}`)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				done := poll(ctx, h)
				time.Sleep(test.after)
				if test.what != nil {
					test.what(t, h, leave)
				}
				if got := <-done; got != test.want {
					t.Errorf("got %+v, want %+v", got, test.want)
				}
			})
		})
	}
}

func TestReceiveWakesForAMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, nil)
		mustCall(t, h, "CreateQueue", `{"QueueName":"jobs"}`)
		done := poll(t.Context(), h)
		time.Sleep(5 * time.Second)
		mustCall(t, h, "SendMessage", `{"QueueUrl":"jobs","MessageBody":"x"}`)
		if got := <-done; got.status != http.StatusOK || got.body == "{}" || got.after != 5*time.Second {
			t.Errorf("got %+v", got)
		}
	})
}

// pipes is a listener for in-memory connections.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, open := <-p; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (pipes) Close() error   { return nil }
func (pipes) Addr() net.Addr { return &net.UnixAddr{} }

func TestLongPollsOfDisconnectedClientsTakeNoMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, nil)
		mustCall(t, h, "CreateQueue", `{"QueueName":"jobs"}`)
		server, listener := Server(h), make(pipes)
		go func() { _ = server.Serve(listener) }()
		const body = `{"QueueUrl":"jobs","WaitTimeSeconds":20}`
		clients := make([]net.Conn, 1000)
		for i := range clients {
			var accepted net.Conn
			clients[i], accepted = net.Pipe()
			listener <- accepted
			if _, err := fmt.Fprintf(clients[i], "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: "+
				"AmazonSQS.ReceiveMessage\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()

		for _, client := range clients {
			client.Close()
		}
		synctest.Wait()
		mustCall(t, h, "SendMessageBatch", sendTenBody())
		synctest.Wait()
		got := mustCall(t, h, "GetQueueAttributes", `{"QueueUrl":"jobs","AttributeNames":["All"]}`)
		for _, want := range []string{`"ApproximateNumberOfMessages":"10"`, `"ApproximateNumberOfMessagesNotVisible":"0"`} {
			if !strings.Contains(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		close(listener)
		_ = server.Close()
	})
}

func TestAfterStopMessagesAreServedWithoutWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, nil)
		mustCall(t, h, "CreateQueue", `{"QueueName":"jobs"}`)
		mustCall(t, h, "SendMessage", `{"QueueUrl":"jobs","MessageBody":"x"}`)
		h.Stop()
		if got := <-poll(t.Context(), h); got.body == "{}" || got.after != 0 {
			t.Errorf("first receive: %+v", got)
		}
		if got := <-poll(t.Context(), h); got.body != "{}" || got.after != 0 {
			t.Errorf("second receive: %+v", got)
		}
	})
}

func TestShutdownEndsLongPolls(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	mustCall(t, h, "CreateQueue", `{"QueueName":"jobs"}`)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{}, 1)
	server := Server(h)
	whole := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{} // a later shutdown waits for the request
		whole.ServeHTTP(w, r)
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	answered := make(chan string, 1)
	go func() { answered <- post(listener.Addr().String(), `{"QueueUrl":"jobs","WaitTimeSeconds":20}`) }()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown waited for the poll: %v", err)
	}
	if got := <-answered; got != "200 OK {}" {
		t.Errorf("the poll was answered %q", got)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

func post(addr, body string) string {
	r, err := http.NewRequest(http.MethodPost, "http://"+addr+"/", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.Close = true
	r.Header.Set("X-Amz-Target", "AmazonSQS.ReceiveMessage")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return response.Status + " " + string(answer)
}
