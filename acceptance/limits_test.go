package acceptance

import (
	"bufio"
	"errors"
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

	"github.com/aws/aws-sdk-go-v2/aws"
	awscredentials "github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"tendril/internal/access"
)

// The clients do not retry, so every stored message must belong to an acknowledged send.
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

func TestBothContentLengthAndChunkedAreRefused(t *testing.T) {
	t.Parallel()
	_, started := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0")
	for name, c := range map[string]struct{ base, path, header string }{
		"the queue endpoint": {started.Endpoint, "/", "X-Amz-Target: AmazonSQS.ListQueues\r\n"},
		"the registry":       {started.Endpoint, "/", "X-Amz-Target: Tendril_20261120.Paused\r\n"},
		"the console":        {started.Console, "/api/v1/login", "Content-Type: application/json\r\n"},
		"a probe":            {started.Console, "/livez", ""},
	} {
		t.Run(name, func(t *testing.T) {
			conn := raw(t, c.base, "POST "+c.path+" HTTP/1.1\r\nHost: localhost\r\n"+c.header+
				"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
			if got := statusOf(conn); got != http.StatusBadRequest {
				t.Errorf("answered %d", got)
			}
		})
	}
}

// A key's ID is not secret, so anyone can start a large upload with it.
func TestUnfinishedUploadsLeaveMemoryToSignedSends(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "credentials.json")
	if out, err := program(t, "credentials", "create", "web", "--credentials", path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	keys, err := access.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, started := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off",
		"--credentials", path)
	signed := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &started.Endpoint, Retryer: aws.NopRetryer{},
		Credentials: awscredentials.NewStaticCredentialsProvider(keys[0].AccessKeyID, string(keys[0].SecretAccessKey), "")})
	created, err := signed.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("jobs")})
	if err != nil {
		t.Fatal(err)
	}

	now := time.Now().UTC().Format("20060102T150405Z")
	upload := "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.SendMessage\r\nX-Amz-Date: " + now + "\r\n" +
		"Authorization: AWS4-HMAC-SHA256 Credential=" + keys[0].AccessKeyID + "/" + now[:8] + "/us-east-1/sqs/aws4_request, " +
		"SignedHeaders=host;x-amz-date;x-amz-target, Signature=00\r\nContent-Length: 6000000\r\n\r\n" +
		strings.Repeat("x", 10<<10)
	for range 400 {
		raw(t, started.Endpoint, upload)
	}
	for range 3 {
		if _, err := signed.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: created.QueueUrl,
			MessageBody: aws.String(strings.Repeat("x", 100<<10))}); err != nil {
			t.Error(err)
		}
	}
}

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
	eventually(t, "one more anonymous request is refused", func() bool {
		return statusOf(get("/api/v1/status", "")) == http.StatusServiceUnavailable
	})
}

func TestWaitsOfPermittedCallersLeaveTheConsoleToProbes(t *testing.T) {
	t.Parallel()
	for _, auth := range []string{"token", "none"} {
		t.Run(auth, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			_, started := start(t, "serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0",
				"--console-auth", auth)
			authorization := ""
			if token, err := os.ReadFile(filepath.Join(data, "console.token")); err == nil {
				authorization = "Authorization: Bearer " + strings.TrimSpace(string(token)) + "\r\n"
			} else if auth == "token" {
				t.Fatal(err)
			}
			get := func(path string) net.Conn {
				return raw(t, started.Console, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n"+authorization+"\r\n")
			}
			const wait = "/api/v1/messages/abc/outcome?wait=25s"
			first := get(wait)
			for range 380 {
				get(wait)
			}
			for _, path := range []string{"/livez", "/readyz"} {
				if got := statusOf(get(path)); got != http.StatusOK {
					t.Errorf("%s got %d beside the waits", path, got)
				}
			}
			if err := first.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if n, err := first.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the first wait ended before the probes were answered: %v", err)
			}
		})
	}
}
