package deliver

import (
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tendril/queue"
)

func TestOnePostPerDelivery(t *testing.T) {
	t.Parallel()
	const messages, senders = 2000, 8
	var mu sync.Mutex
	posted := make(map[string]int)
	answered := make(map[string]bool)
	h, _ := start(t, func(c *appConn) {
		for p, ok := c.read(); ok; p, ok = c.read() {
			id := p.Header.Get("X-Aws-Sqsd-Msgid")
			fate := rand.IntN(10)
			mu.Lock()
			posted[id]++
			answered[id] = fate < 8
			mu.Unlock()
			switch fate {
			case 9:
				c.Conn.(*net.TCPConn).SetLinger(0)
				return
			case 8:
				c.write(ok200[:len(ok200)-2])
				return
			}
			c.write(ok200)
			switch fate {
			case 7: // while the next message may be in transit
				spin(rand.IntN(20000))
				return
			case 6:
				return
			}
		}
	}, func(o *Options) { o.KeepAlive = time.Hour })
	var all sync.WaitGroup
	results := make([]queue.Result, messages)
	for sender := range senders {
		all.Go(func() {
			for i := sender; i < messages; i += senders {
				m := message()
				m.ID = strconv.Itoa(i)
				if i%50 == 0 {
					m.Body = strings.Repeat("x", 3*writeChunk)
				}
				results[i] = deliver(h, m)
			}
		})
	}
	all.Wait()
	mu.Lock()
	defer mu.Unlock()
	outcomes := make(map[string]int)
	for i, r := range results {
		n, id := posted[strconv.Itoa(i)], strconv.Itoa(i)
		outcomes[r.Outcome.String()+" "+r.Reason]++
		switch {
		case n > 1:
			t.Errorf("message %d was posted %d times", i, n)
		case r.Outcome == queue.Done && !answered[id]:
			t.Errorf("message %d is done without an answer", i)
		case r.Outcome != queue.Done && answered[id]:
			t.Errorf("message %d was answered and is %v (%s)", i, r.Outcome, r.Reason)
		case r.Outcome == queue.Unreached && n > 0:
			t.Errorf("message %d was posted and is unreached", i)
		}
	}
	if outcomes["done "] == 0 || outcomes["failed connection closed without a response"] == 0 ||
		outcomes["failed response was cut off"] == 0 {
		t.Errorf("some outcome never happened: %v", outcomes)
	}
	t.Logf("%v", outcomes)
}

// spin waits, because timers would be too imprecise.
func spin(n int) {
	for i := range n {
		_ = strconv.Itoa(i)
	}
}
