package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

type endpoint struct {
	name  string
	query bool
	// warmUp is the number of messages before the measurement, for servers with a JIT compiler.
	warmUp  int64
	command func(b *testing.B, bin, address string) (*exec.Cmd, error)
}

var endpoints = []endpoint{
	{"tendril/json", false, 1000, tendrilServe},
	{"tendril/query", true, 1000, tendrilServe},
	{"goaws/query", true, 1000, goAws},
	{"elasticmq/json", false, 3000, elasticMQ},
	{"moto/json", false, 50, moto},
}

func tendrilServe(b *testing.B, bin, address string) (*exec.Cmd, error) {
	return exec.Command(bin, "serve", "--data-dir", b.TempDir(), "--listen", address, "--console", "off"), nil
}

func goAws(b *testing.B, _, address string) (*exec.Cmd, error) {
	bin, err := installed("goaws/cmd")
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(address)
	settings := filepath.Join(b.TempDir(), "goaws.yaml")
	err = os.WriteFile(settings, fmt.Appendf(nil, "Local:\n  Host: %s\n  Port: %s\n  Region: us-east-1\n", host, port),
		0o600)
	return exec.Command(bin, "-config", settings), err
}

func elasticMQ(_ *testing.B, _, address string) (*exec.Cmd, error) {
	jars, err := installed("elasticmq")
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(address)
	return exec.Command("java", "-Drest-sqs.bind-hostname="+host, "-Drest-sqs.bind-port="+port,
		"-Drest-stats.enabled=false", "-Dnode-address.host="+host, "-Dnode-address.port="+port, "-cp", jars+"/*",
		"org.elasticmq.server.Main"), nil
}

func moto(_ *testing.B, _, address string) (*exec.Cmd, error) {
	python, err := installed("python/bin/python")
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(address)
	return exec.Command(python, "-m", "moto.server", "-H", host, "-p", port), nil
}

// BenchmarkEndpoint measures SQS servers with 16 connections. The client sends 200-byte messages for a second each,
// individually and in batches of ten, and receives and deletes 5,000 messages in batches of ten. Only tendril stores
// messages on disk.
func BenchmarkEndpoint(b *testing.B) {
	bin := buildTendril(b)
	for _, e := range endpoints {
		b.Run(e.name, func(b *testing.B) {
			var all []map[string]float64
			for range b.N {
				all = append(all, e.run(b, bin))
			}
			for unit := range all[0] {
				var values []float64
				for _, run := range all {
					values = append(values, run[unit])
				}
				b.ReportMetric(median(values), unit)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func (e endpoint) run(b *testing.B, bin string) map[string]float64 {
	address := "127.0.0.1:" + testpeer.FreePort(b)
	cmd, err := e.command(b, bin, address)
	if err != nil {
		b.Skip(err)
	}
	d := startDaemon(b, cmd, credentials)
	c := &sqsClient{query: e.query, address: "http://" + address + "/",
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}}
	await(b, e.name+" did not create a queue", func() bool { return c.createQueue("bench") == nil }, d)
	for range 2 {
		e.measure(b, d, e.warmUp, 10*time.Second, c.send)
		e.measure(b, d, 2*e.warmUp, 10*time.Second, c.receiveTen)
	}
	got := map[string]float64{}
	got["send/s"], got["send-cpu-µs/msg"] = e.measure(b, d, 1e6, time.Second, c.send)
	got["send-ten/s"], got["send-ten-cpu-µs/msg"] = e.measure(b, d, 1e6, time.Second, c.sendTen)
	if err := c.createQueue("bench-receive"); err != nil {
		b.Fatal(err)
	}
	e.measure(b, d, backlog, 5*time.Second, c.sendTen)
	got["receive-delete/s"], got["receive-delete-cpu-µs/msg"] = e.measure(b, d, backlog, 5*time.Second, c.receiveTen)
	got["MB"] = float64(d.memory(b)) / 1e6
	d.stop(b)
	return got
}

const backlog = 5000

// measure calls step concurrently until limit has passed, n messages are processed, or none are left. cpu is in
// microseconds per message.
func (e endpoint) measure(b *testing.B, d *daemon, n int64, limit time.Duration,
	step func() (int, error)) (perSecond, cpu float64) {
	b.Helper()
	failed := make(chan error, callers)
	var through atomic.Int64
	var work sync.WaitGroup
	began, used := time.Now(), d.cpu(b)
	for range callers {
		work.Go(func() {
			for time.Since(began) < limit && through.Load() < n {
				done, err := step()
				if err != nil {
					failed <- err
					return
				}
				if done == 0 {
					return
				}
				through.Add(int64(done))
			}
		})
	}
	work.Wait()
	took := time.Since(began)
	if len(failed) > 0 {
		b.Fatal(e.name, ": ", <-failed)
	}
	return float64(through.Load()) / took.Seconds(), float64((d.cpu(b) - used).Microseconds()) / float64(through.Load())
}

const callers = 16

// Without an SDK and signatures, sqsClient takes little CPU time from the server.
type sqsClient struct {
	client  *http.Client
	address string
	query   bool
	queue   string
}

// moto recognizes the service by the scope in this header, and does not check the signature.
const scope = "AWS4-HMAC-SHA256 Credential=local/20261126/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0"

var (
	queueURLs = regexp.MustCompile(`"QueueUrl": ?"([^"]+)"|<QueueUrl>([^<]+)<`)
	handles   = regexp.MustCompile(`"ReceiptHandle": ?"([^"]+)"|<ReceiptHandle>([^<]+)<`)
)

func (c *sqsClient) createQueue(name string) error {
	answer, err := c.call("CreateQueue", map[string]any{"QueueName": name}, url.Values{"QueueName": {name}})
	if err != nil {
		return err
	}
	m := queueURLs.FindSubmatch(answer)
	if m == nil {
		return fmt.Errorf("no queue in %s", answer)
	}
	c.queue = string(m[1]) + string(m[2])
	return nil
}

func (c *sqsClient) send() (int, error) {
	_, err := c.call("SendMessage", map[string]any{"QueueUrl": c.queue, "MessageBody": body},
		url.Values{"QueueUrl": {c.queue}, "MessageBody": {body}})
	return 1, err
}

func (c *sqsClient) sendTen() (int, error) {
	return c.batch("SendMessageBatch", "MessageBody", strings.Split(strings.Repeat(body+"\n", 10), "\n")[:10])
}

func (c *sqsClient) receiveTen() (int, error) {
	answer, err := c.call("ReceiveMessage", map[string]any{"QueueUrl": c.queue, "MaxNumberOfMessages": 10},
		url.Values{"QueueUrl": {c.queue}, "MaxNumberOfMessages": {"10"}})
	if err != nil {
		return 0, err
	}
	var receipts []string
	for _, m := range handles.FindAllSubmatch(answer, -1) {
		receipts = append(receipts, string(m[1])+string(m[2]))
	}
	if len(receipts) == 0 {
		return 0, nil
	}
	return c.batch("DeleteMessageBatch", "ReceiptHandle", receipts)
}

func (c *sqsClient) batch(action, field string, values []string) (int, error) {
	form, entries := url.Values{"QueueUrl": {c.queue}}, []map[string]string{}
	for i, v := range values {
		id := strconv.Itoa(i + 1)
		entries = append(entries, map[string]string{"Id": id, field: v})
		prefix := action + "RequestEntry." + id + "."
		form[prefix+"Id"], form[prefix+field] = []string{id}, []string{v}
	}
	_, err := c.call(action, map[string]any{"QueueUrl": c.queue, "Entries": entries}, form)
	return len(values), err
}

func (c *sqsClient) call(action string, fields map[string]any, form url.Values) ([]byte, error) {
	var r *http.Request
	var err error
	if c.query {
		form.Set("Action", action)
		form.Set("Version", "2012-11-05")
		if r, err = http.NewRequest(http.MethodPost, c.address, strings.NewReader(form.Encode())); err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	} else {
		request, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		if r, err = http.NewRequest(http.MethodPost, c.address, bytes.NewReader(request)); err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	}
	r.Header.Set("Authorization", scope)
	answer, err := c.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s: %s", action, answer.Status, text)
	}
	return text, err
}
