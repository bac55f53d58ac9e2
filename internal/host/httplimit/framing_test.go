package httplimit

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRequestsOfAmbiguousLengthAreRefused(t *testing.T) {
	t.Parallel()
	const (
		head    = "POST / HTTP/1.1\r\nHost: x\r\n"
		old     = "POST / HTTP/1.0\r\nConnection: keep-alive\r\n"
		length  = "Content-Length: 5\r\n"
		chunked = "Transfer-Encoding: chunked\r\n"
		chunks  = "\r\n5\r\nhello\r\n0\r\n\r\n"
		whole   = head + length + "\r\nhello"
	)
	servers := map[string]func(*testing.T) net.Conn{"plain": newReader(t, false), "TLS": newReader(t, true)}
	for _, c := range []struct{ name, request, want string }{
		{"length, then chunked", head + length + chunked + chunks, "400 closed"},
		{"chunked, then length", head + chunked + length + chunks, "400 closed"},
		{"other case", head + "content-length:5\r\nTRANSFER-ENCODING:\tChunked\r\n" + chunks, "400 closed"},
		{"lines without CR", strings.ReplaceAll(head+length+chunked, "\r", "") + chunks[1:], "400 closed"},
		{"length of the chunks", head + "Content-Length: 15\r\n" + chunked + chunks, "400 closed"},
		{"behind another request", whole + head + length + chunked + chunks, "200 400 closed"},
		{"behind an empty line", whole + "\r\n" + head + length + chunked + chunks, "200 400 closed"},
		{"behind a request to no path", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n" + head + length + chunked + chunks, "200 400 closed"},
		{"in a body", head + "Content-Length: 50\r\n\r\nPOST\r\n" + length + chunked[:25] + whole, "200 200"},
		{"before another request", head + length + chunked + chunks + whole, "400 closed"},
		{"different lengths", head + length + "Content-Length: 6\r\n\r\nhello", "400 closed"},
		{"the same length twice", head + length + length + "\r\nhello" + whole, "200 200"},
		{"list of lengths", head + "Content-Length: 5, 5\r\n\r\nhello", "400 closed"},
		{"length with a sign", head + "Content-Length: +5\r\n\r\nhello", "400 closed"},
		{"length with many zeros", head + "Content-Length: " + strings.Repeat("0", 80) + "5\r\n\r\nhello" + whole, "400 closed"},
		{"blank before a colon", head + "Content-Length : 5\r\n" + chunked + chunks, "400 closed"},
		{"two encodings", head + "Transfer-Encoding: chunked, identity\r\n" + chunks, "501 closed"},
		{"two encodings and a length", head + length + "Transfer-Encoding: chunked, identity\r\n" + chunks, "501 closed"},
		{"chunked twice", head + chunked + chunked + chunks, "501 closed"},
		{"folded encoding", head + "Transfer-Encoding:\r\n chunked\r\n" + chunks, "400 closed"},
		{"folded length", head + "Content-Length:\r\n\t5\r\n\r\nhello" + whole, "400 closed"},
		{"folded into another field", head + length + "X: y\r\n " + chunked + "\r\nhello" + whole, "400 closed"},
		{"chunked in HTTP/1.0", old + chunked + chunks, "400 closed"},
		{"both in HTTP/1.0", old + length + chunked + "\r\nhello" + whole, "400 closed"},

		{"chunked", head + chunked + chunks + whole, "200 closed"},
		{"length", whole + whole + whole, "200 200 200"},
		{"length in HTTP/1.0", old + length + "\r\nhello" + whole, "200 200"},
		{"no body", head + "\r\n" + head + "\r\n" + whole, "200 200 200"},
	} {
		for name, dial := range servers {
			for _, part := range []int{len(c.request), 7, 1} {
				t.Run(fmt.Sprintf("%s/%s/%d bytes at once", c.name, name, part), func(t *testing.T) {
					t.Parallel()
					if got := statuses(dial(t), c.request, part, strings.Count(c.want, " ")+1); got != c.want {
						t.Errorf("%q is answered with %s, want %s", c.request, got, c.want)
					}
				})
			}
		}
	}
}

func newReader(t *testing.T, encrypted bool) (dial func(*testing.T) net.Conn) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil || encrypted != (r.TLS != nil && r.TLS.HandshakeComplete) {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	if encrypted {
		s.Listener = tls.NewListener(s.Listener, &tls.Config{Certificates: testCertificates()})
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Listener = Listen(s.Config, s.Listener, Limits{Connections: 1000})
	s.Start()
	t.Cleanup(s.Close)
	return func(t *testing.T) net.Conn {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if encrypted {
			return tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		}
		return conn
	}
}

func statuses(conn net.Conn, requests string, part, most int) string {
	go func() {
		for rest := []byte(requests); len(rest) > 0; rest = rest[min(part, len(rest)):] {
			if _, err := conn.Write(rest[:min(part, len(rest))]); err != nil {
				return
			}
		}
	}()

	var got []string
	for answers := bufio.NewReader(conn); len(got) < most; {
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			return strings.Join(append(got, "closed"), " ")
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		got = append(got, fmt.Sprint(resp.StatusCode))
	}
	return strings.Join(got, " ")
}

func TestRequestWithoutTLSIsAnswered(t *testing.T) {
	t.Parallel()
	conn := newReader(t, true)(t).(*tls.Conn).NetConn()
	if got := statuses(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 100, 2); got != "400 closed" {
		t.Errorf("answered %s", got)
	}
}

func BenchmarkFraming(b *testing.B) {
	request := []byte("POST / HTTP/1.1\r\nHost: 127.0.0.1:9324\r\nUser-Agent: aws-sdk-go-v2/1.42.0 ua/2.1 os/linux lang/go#1.26 md/GOOS#linux " +
		"md/GOARCH#amd64 api/sqs#1.50.0 m/E,e\r\nContent-Length: 136\r\nAmz-Sdk-Invocation-Id: 7f3b0a3f-9c6e-4a0c-8a5c-1f1b0d8c3f11\r\n" +
		"Amz-Sdk-Request: attempt=1; max=3\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20261128/us-east-1/sqs/aws4_request, " +
		"SignedHeaders=amz-sdk-invocation-id;amz-sdk-request;content-length;content-type;host;x-amz-date;x-amz-target, " +
		"Signature=" + strings.Repeat("0", 64) + "\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Date: 20261128T150000Z\r\n" +
		"X-Amz-Target: AmazonSQS.SendMessage\r\nAccept-Encoding: gzip\r\n\r\n" + strings.Repeat("x", 136))
	var f framing
	for b.Loop() {
		f.follow(request)
	}
}
