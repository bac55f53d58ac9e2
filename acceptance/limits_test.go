package acceptance

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// 30 clients share the eight connections that 64 descriptors allow. Each send is either performed and answered, or
// not performed. The SDKs retry, and no message is duplicated.
func TestFewDescriptorsAnswerEverySendTheyAccept(t *testing.T) {
	t.Parallel()
	const clients, sends = 30, 15
	cmd := exec.Command("sh", "-c", `ulimit -n 64 && exec "$@"`, "sh", program(t).Path, "serve", "--data-dir", t.TempDir(),
		"--listen", "127.0.0.1:0", "--console", "off")
	p := launchCommand(t, cmd)
	started := p.await(t, "it started", func(e event) bool { return e.Msg == "started" })
	jobs := createQueue(t, client(started.Endpoint), "jobs", nil)
	var answered, failed atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			c, body := client(started.Endpoint), "work"
			for range sends {
				_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &jobs, MessageBody: &body})
				if err != nil {
					failed.Add(1)
				} else {
					answered.Add(1)
				}
			}
		})
	}
	all.Wait()
	stored := attributes(t.Context(), t, client(started.Endpoint), jobs)["ApproximateNumberOfMessages"]
	if stored != fmt.Sprint(answered.Load()) {
		t.Errorf("%s messages are in the queue, %d sends were answered, %d were not", stored, answered.Load(), failed.Load())
	}
	if most := int64(clients * sends / 10); failed.Load() > most {
		t.Errorf("%d of %d sends failed, want at most %d", failed.Load(), clients*sends, most)
	}
}

func raw(t *testing.T, base, request string) net.Conn {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn
}

// statusOf returns the status of a response of any length, or 0 if the connection was closed.
func statusOf(conn net.Conn) (status int) {
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil {
		_, err = fmt.Sscanf(line, "HTTP/1.1 %d", &status)
	}
	if err != nil {
		return 0
	}
	return status
}

// The signed endpoint, its registry and the console refuse a request because of its header, before its body arrives.
func TestBodiesWithoutCredentialsAreNotRead(t *testing.T) {
	t.Parallel()
	credentials := filepath.Join(t.TempDir(), "credentials.json")
	if out, err := program(t, "credentials", "create", "web", "--credentials", credentials).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, signed := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0",
		"--credentials", credentials)
	_, open := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off")
	now := time.Now().UTC()
	authorization := func(at time.Time, key string) string {
		return "X-Amz-Date: " + at.Format("20060102T150405Z") + "\r\nAuthorization: AWS4-HMAC-SHA256 Credential=" + key + "/" +
			at.Format("20060102") + "/us-east-1/sqs/aws4_request, SignedHeaders=host;x-amz-date, Signature=00\r\n"
	}
	for name, c := range map[string]struct {
		base, path, header string
		want               int
	}{
		"JSON without a signature": {signed.Endpoint, "/", "X-Amz-Target: AmazonSQS.SendMessage\r\n", 403},
		"Query without a signature": {signed.Endpoint, "/",
			"Content-Type: application/x-www-form-urlencoded\r\n", 403},
		"an unknown key":         {signed.Endpoint, "/", "X-Amz-Target: AmazonSQS.SendMessage\r\n" + authorization(now, "X"), 403},
		"another Authorization":  {signed.Endpoint, "/", "Authorization: Bearer x\r\n", 403},
		"the registry, signed":   {signed.Endpoint, "/", "X-Amz-Target: Tendril_20261120.Fire\r\n", 403},
		"the registry, no token": {open.Endpoint, "/", "X-Amz-Target: Tendril_20261120.Paused\r\n", 403},
		"an act of the console": {signed.Console, "/api/v1/queues/jobs/messages",
			"Content-Type: application/json\r\n", 401},
		"a login":               {signed.Console, "/api/v1/login", "Content-Type: application/json\r\n", 401},
		"a form of the console": {signed.Console, "/queues/jobs/send", "Content-Type: application/x-www-form-urlencoded\r\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			conn := raw(t, c.base, "POST "+c.path+" HTTP/1.1\r\nHost: localhost\r\n"+c.header+
				"Content-Length: 65000\r\n\r\n"+strings.Repeat("x", 100))
			got := statusOf(conn)
			if c.want != 0 && got != c.want || got < 300 {
				t.Errorf("answered %d before the body, want %d", got, c.want)
			}
		})
	}
}

// Programs without a token open as many waiting requests and live pages as they can. Probes, and commands with the
// token, still work.
func TestAnonymousWaitsLeaveTheConsoleToOthers(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	_, started := start(t, "serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0")
	token, err := os.ReadFile(filepath.Join(data, "console.token"))
	if err != nil {
		t.Fatal(err)
	}
	authorized := "Authorization: Bearer " + strings.TrimSpace(string(token)) + "\r\n"
	get := func(path, header string) net.Conn {
		return raw(t, started.Console, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n")
	}
	for i := range 300 {
		path := "/api/v1/messages/abc/outcome?wait=25s"
		if i%2 == 0 {
			path = "/live?at=/"
		}
		get(path, "")
	}
	for path, header := range map[string]string{"/livez": "", "/readyz": "", "/api/v1/status": authorized,
		"/live?at=/": authorized} {
		if got := statusOf(get(path, header)); got != http.StatusOK {
			t.Errorf("%s got %d beside anonymous waits", path, got)
		}
	}
	if got := statusOf(get("/api/v1/status", "")); got != http.StatusServiceUnavailable {
		t.Errorf("one more anonymous request got %d", got)
	}
}
