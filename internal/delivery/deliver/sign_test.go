package deliver

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"tendril/queue"
)

const signingSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // from the Standard Webhooks specification

func signing(o *Options) { o.SigningKeys = []string{signingSecret} }

type received struct {
	id, timestamp, signature string
	err                      error
}

func verify(t testing.TB, p post) received {
	t.Helper()
	receiver, err := standardwebhooks.NewWebhook(signingSecret)
	if err != nil {
		t.Fatal(err)
	}
	h := p.Header
	return received{h.Get("webhook-id"), h.Get("webhook-timestamp"), h.Get("webhook-signature"),
		receiver.VerifyIgnoringTimestamp([]byte(p.body), h)}
}

func TestEachAttemptIsSignedAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []received
		h, _ := startPiped(t, func(c *appConn) {
			for p, ok := c.read(); ok; p, ok = c.read() {
				got = append(got, verify(t, p))
				c.write("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
			}
		}, signing)
		run := message(text(queue.AttributePath, "/backup"), text(queue.AttributeTask, "backup"))
		for _, m := range []*queue.Message{message(text("webhook-id", "other")), message(), run} {
			deliver(h, m)
			time.Sleep(90 * time.Second)
		}
		begin := time.Now().Add(-3 * 90 * time.Second).Unix()
		for i, r := range got {
			if want := strconv.FormatInt(begin+int64(i)*90, 10); r.err != nil || r.timestamp != want || r.id != message().ID {
				t.Errorf("attempt %d: %+v, want the time %s", i+1, r, want)
			}
		}
		if len(got) != 3 || got[0].signature == got[1].signature {
			t.Errorf("%d attempts: %+v", len(got), got)
		}
		h.Close()
	})
}

func TestIDIsSignedAsItIsSent(t *testing.T) {
	t.Parallel()
	var got received
	h, _ := start(t, func(c *appConn) {
		for p, ok := c.read(); ok; p, ok = c.read() {
			got = verify(t, p)
			c.write(ok200)
		}
	}, signing)
	m := message()
	m.ID = "a\r\nwebhook-id: b"
	want(t, deliver(h, m), queue.Done, http.StatusOK, "")
	if got.err != nil || got.id != "a%0D%0Awebhook-id:%20b" {
		t.Errorf("%+v", got)
	}
}

func TestBatchIsSigned(t *testing.T) {
	t.Parallel()
	var got []received
	h, _ := start(t, func(c *appConn) {
		for p, ok := c.read(); ok; p, ok = c.read() {
			got = append(got, verify(t, p))
			c.write(ok200)
		}
	}, signing, func(o *Options) { o.QueueARN = "arn:aws:sqs:eu-west-1:000000000000:jobs" })
	first, second := message(), message()
	second.ID = "other"
	for _, batch := range [][]*queue.Message{{first, second}, {first, second}, {second, first}} {
		h.DeliverBatch(t.Context(), batch)
	}
	if len(got) != 3 || got[0].id != got[1].id || got[0].id == got[2].id || !strings.HasPrefix(got[0].id, "batch_") {
		t.Errorf("%+v", got)
	}
	for _, r := range got {
		if r.err != nil {
			t.Error(r.err)
		}
	}
}

func TestBadSigningKeyIsRefused(t *testing.T) {
	t.Parallel()
	_, err := NewClient(&Options{Target: "http://localhost:5000",
		SigningKeys: []string{signingSecret, "whsec_c2VjcmV0"}})
	if err == nil || !strings.Contains(err.Error(), "signing key 2 has 6 bytes") || strings.Contains(err.Error(), "c2Vj") {
		t.Error(err)
	}
}

func TestHeadWithAndWithoutSignatureAllocatesNothing(t *testing.T) {
	if underRace {
		t.Skip("pools lose what they hold under the race detector")
	}
	m, out := message(text("fooBar", "x")), make([]byte, 0, 4<<10)
	for _, change := range []func(*Options){func(*Options) {}, signing} {
		h := newHTTP(t, change)
		trace := &TraceContext{}
		h.head.append(out, m, nil, m.Body, trace)
		if n := testing.AllocsPerRun(200, func() { h.head.append(out, m, nil, m.Body, trace) }); n >= 1 {
			t.Errorf("signed %v: %v allocations", h.head.signer != nil, n)
		}
	}
}
