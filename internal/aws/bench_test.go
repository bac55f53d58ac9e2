package aws

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"tendril/queue"
)

// BenchmarkReceiveDelete reports the cost per message of receiving and deleting ten messages: without a network
// ("stub"), over TCP ("loopback"), and with the SDK's client ("sdk").
func BenchmarkReceiveDelete(b *testing.B) {
	receive, remove := cannedTen()
	stub := roundTrip(func(r *http.Request) (*http.Response, error) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		body := remove
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "ReceiveMessage") {
			body = receive
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Date": {"Mon, 02 Jan 2006 15:04:05 GMT"}},
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
	})
	b.Run("stub/lean", func(b *testing.B) { benchmarkLean(b, openCanned(b, stub, nil)) })
	b.Run("stub/sdk", func(b *testing.B) { benchmarkSDK(b, openCanned(b, stub, nil), stub) })

	address := serveCanned(b, receive, remove)
	b.Run("loopback/lean", func(b *testing.B) { benchmarkLean(b, openAt(b, address)) })
	b.Run("loopback/sdk", func(b *testing.B) { q := openAt(b, address); benchmarkSDK(b, q, q.sqs.service.exchanger.transport) })
}

func openAt(b *testing.B, address string) *Queue {
	s, err := OpenSQS(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	q, err := s.Queue(b.Context(), "http://"+address+"/123456789012/jobs")
	if err != nil {
		b.Fatal(err)
	}
	return q
}

func benchmarkLean(b *testing.B, q *Queue) {
	wait := 20 * time.Second
	receipts := make([]string, 10)
	b.ReportAllocs()
	spent := meter(b)
	for b.Loop() {
		messages, err := q.Receive(b.Context(), queue.ReceiveRequest{Max: 10, Wait: &wait})
		if err != nil || len(messages) != 10 {
			b.Fatal(len(messages), err)
		}
		for i, m := range messages {
			receipts[i] = m.ReceiptHandle
		}
		if errs := q.Delete(b.Context(), receipts); errs != nil {
			b.Fatal(errs)
		}
	}
	spent()
}

func benchmarkSDK(b *testing.B, q *Queue, transport http.RoundTripper) {
	client := sqs.New(q.sqs.api.Options(), q.site.setEndpoint, func(o *sqs.Options) {
		o.HTTPClient = &http.Client{Transport: transport}
	})
	url := q.URL()
	b.ReportAllocs()
	spent := meter(b)
	for b.Loop() {
		in := &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 20,
			MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}}
		out, err := client.ReceiveMessage(b.Context(), in)
		if err != nil || len(out.Messages) != 10 {
			b.Fatal(err)
		}
		remove := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
		for i, m := range out.Messages {
			remove.Entries = append(remove.Entries,
				types.DeleteMessageBatchRequestEntry{Id: sdk.String(fmt.Sprint(i)), ReceiptHandle: m.ReceiptHandle})
		}
		if _, err := client.DeleteMessageBatch(b.Context(), remove); err != nil {
			b.Fatal(err)
		}
	}
	spent()
}

func meter(b *testing.B) (report func()) {
	cpu := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	began := cpu()
	return func() {
		messages := 10 * float64(b.N)
		b.ReportMetric(float64(b.Elapsed())/messages, "ns/msg")
		b.ReportMetric(float64(cpu()-began)/messages, "cpu-ns/msg")
	}
}

func serveCanned(b *testing.B, receive, remove []byte) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	answer := func(body []byte) []byte {
		return fmt.Appendf(nil,
			"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	answers := map[bool][]byte{true: answer(receive), false: answer(remove)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for in := bufio.NewReader(conn); ; {
					isReceive, err := readRequest(in)
					if err != nil {
						return
					}
					if _, err := conn.Write(answers[isReceive]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func readRequest(in *bufio.Reader) (isReceive bool, err error) {
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return false, err
		}
		switch {
		case len(line) <= 2:
			_, err := in.Discard(length)
			return isReceive, err
		case bytes.HasPrefix(line, []byte("Content-Length: ")):
			if _, err := fmt.Sscanf(string(line), "Content-Length: %d", &length); err != nil {
				return false, err
			}
		case bytes.HasPrefix(line, []byte("X-Amz-Target: ")):
			isReceive = bytes.Contains(line, []byte("ReceiveMessage"))
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	receive, _ := cannedTen()
	b.ReportAllocs()
	b.SetBytes(int64(len(receive)))
	for b.Loop() {
		if messages, err := readMessages(receive, nil); err != nil || len(messages) != 10 {
			b.Fatal(err)
		}
	}
}
