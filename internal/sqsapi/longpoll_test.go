//go:build !race

package sqsapi

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"

	"tendril/internal/host/httplimit"
)

// A long poll uses 4 KiB of stack, not 8, beside net/http's memory and the client's connection. The race detector
// changes stack frames.
func TestLongPollsCostLittleMemory(t *testing.T) {
	const polls, most = 300, 25_000
	h := newHandler(t, nil)
	mustCall(t, h, "CreateQueue", `{"QueueName":"jobs","Attributes":{"ReceiveMessageWaitTimeSeconds":"20"}}`)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := Server(h)
	listener = httplimit.Listen(server, listener, httplimit.Limits{Connections: 2 * polls,
		Bodies: httplimit.NewBodies(MaxBody, MaxBody), Anonymous: h.Anonymous})
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }()
	const body = `{"QueueUrl":"http://127.0.0.1/000000000000/jobs"}`
	request := fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\n"+
		"Content-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	open := make([]net.Conn, 0, polls)
	poll := func(n int) (used uint64) {
		for range n {
			c, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
			if _, err := strings.NewReader(request).WriteTo(c); err != nil {
				t.Fatal(err)
			}
		}
		for stacks := make([]byte, 4<<20); ; runtime.Gosched() {
			all := stacks[:runtime.Stack(stacks, true)]
			if bytes.Count(all, []byte("broker.(*receive).wait(")) == len(open) {
				break
			}
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := poll(5)
	if each := (poll(polls) - before) / polls; each > most {
		t.Errorf("a long poll takes %d bytes, more than %d", each, most)
	}
	for _, c := range open {
		c.Close()
	}
	_ = server.Close()
	<-served
}
