package sqsapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestServerLimits(t *testing.T) {
	t.Parallel()
	s := Server(&Handler{})
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("a limit is missing: %+v", s)
	}
	if longest := s.ReadTimeout + 20*time.Second; s.WriteTimeout <= longest {
		t.Errorf("WriteTimeout %v cuts a slow body followed by the longest poll, %v", s.WriteTimeout, longest)
	}
}

// net/http drops the Content-Length of a chunked request, which may hide a second request.
func TestConnectionOfAChunkedRequestIsClosed(t *testing.T) {
	t.Parallel()
	address := strings.TrimPrefix(newServer(t, newHandler(t, nil)), "http://")
	const head = "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.ListQueues\r\n"
	for _, c := range []struct {
		name, request string
		closed        bool
	}{
		{"length", head + "Content-Length: 2\r\n\r\n{}", false},
		{"chunks", head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", true},
		{"both", head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, c.request); err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || response.StatusCode != http.StatusOK || response.Close != c.closed {
				t.Errorf("%+v, %v; want status 200, closed %t", response, err, c.closed)
			}
		})
	}
}

func TestTagsOfCreateQueueOverQueryHaveEitherName(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	for _, name := range []string{"Tag", "Tags"} {
		t.Run(name, func(t *testing.T) {
			form := "Action=CreateQueue&QueueName=" + name + "&" + name + ".1.Key=team&" + name + ".1.Value=a"
			r := httptest.NewRequest("POST", "/", strings.NewReader(form))
			r.Host = "localhost"
			r.Header.Set("Content-Type", formType)
			h.ServeHTTP(httptest.NewRecorder(), r)
			if got := mustCall(t, h, "ListQueueTags", `{"QueueUrl":"`+name+`"}`); !strings.Contains(got, `"team":"a"`) {
				t.Errorf("tags %s", got)
			}
		})
	}
}
