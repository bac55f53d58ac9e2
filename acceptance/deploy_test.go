package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/testing/testpeer"
)

// Some versions fail to build, exit immediately, or never listen. TENDRIL_DEPLOYMENTS sets the number of deployments.
func TestDeploymentsUnderLoad(t *testing.T) {
	t.Parallel()
	resume(t)
	deployments := testpeer.Size(20, 100)
	if n, err := strconv.Atoi(os.Getenv("TENDRIL_DEPLOYMENTS")); err == nil {
		deployments = n
	}
	journal, data := filepath.Join(t.TempDir(), "journal"), t.TempDir()
	bundle := func(version string) map[string]string {
		return map[string]string{"Procfile": appLine(journal, version)}
	}
	p, started := start(t, "up", "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--port",
		testpeer.FreePort(t), "--name", "jobs",
		"--deploy-timeout", "10s", "--processes-min", "2", "--processes-max", "2", writeBundle(t, bundle("0")))
	load := newLoad(t, started)
	serving := "0"
	bad := 0
	rolledBack := 0
	for i := 1; i <= deployments; i++ {
		files, broken := bundle(strconv.Itoa(i)), i%10 < 3
		if broken {
			switch bad++; bad % 3 {
			case 0:
				files["Buildfile"] = "build: echo it does not compile; exit 1\n"
			case 1:
				files["Procfile"] = "web: exit 1\n"
			case 2:
				files["Procfile"] = "web: sleep 1000\n"
			}
		}
		status, answer := deploy(t, data, started, writeBundle(t, files))
		switch {
		case broken && status == http.StatusUnprocessableEntity:
			rolledBack++
		case broken || status != http.StatusOK:
			t.Fatalf("deployment %d (broken %t): status %d: %s", i, broken, status, answer)
		default:
			serving = strconv.Itoa(i)
		}
	}
	time.Sleep(time.Second)
	sent := load.stop()
	awaitEmpty(t, started)
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	times, versions := readJournal(t, journal)
	lost, twice := 0, 0
	for id := range sent {
		switch n := times[id]; {
		case n == 0:
			lost++
		case n > 1:
			twice++
		}
	}
	report(t, "%d deployments, %d of them broken and %d rolled back; %d messages by %d versions: lost %d, worked on "+
		"twice %d; the last version had %d",
		deployments, bad, rolledBack, len(sent), len(versions), lost, twice, versions[serving])
	if lost > 0 || twice > 0 || rolledBack != bad {
		t.Error("lost, worked on twice, and broken but not rolled back should all be 0")
	}
	if versions[serving] == 0 || len(versions) < (deployments-bad)/2 {
		t.Errorf("%d versions worked, the last one on %d messages", len(versions), versions[serving])
	}
	checkLedger(t, data, int64(len(sent)))
}

func TestDeploymentDuringTheStart(t *testing.T) {
	t.Parallel()
	journal, data, built := filepath.Join(t.TempDir(), "journal"), t.TempDir(), filepath.Join(t.TempDir(), "built")
	first := writeBundle(t, map[string]string{
		"Procfile":  appLine(journal, "1"),
		"Buildfile": "build: until [ -e " + built + " ]; do sleep 0.02; done\n",
	})
	p, started := start(t, "up", "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--port",
		testpeer.FreePort(t), "--name", "jobs", first)
	p.await(t, "it builds", func(e event) bool { return e.Msg == "step started" && e.attribute("phase") == "build" })
	p.cmd.Process.Signal(syscall.SIGHUP)
	var asked sync.WaitGroup
	asked.Go(func() {
		if status, answer := deploy(t, data, started,
			writeBundle(t, map[string]string{"Procfile": appLine(journal, "2")})); status != http.StatusOK {
			t.Errorf("status %d: %s", status, answer)
		}
	})
	time.Sleep(200 * time.Millisecond)
	if err := os.WriteFile(built, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	asked.Wait()
	id := sendBody(t, started, "1ms")
	awaitEmpty(t, started)
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if times, versions := readJournal(t, journal); times[id] != 1 || versions["2"] != 1 {
		t.Errorf("the message was worked on %d times, by %v; want once, by version 2", times[id], versions)
	}
}

type load struct {
	cancel context.CancelFunc
	all    sync.WaitGroup
	mu     sync.Mutex
	sent   map[string]bool
}

func newLoad(t *testing.T, started event) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{cancel: cancel, sent: map[string]bool{}}
	c := client(started.Endpoint)
	t.Cleanup(cancel)
	for range 2 {
		l.all.Go(func() {
			for ctx.Err() == nil {
				out, err := c.SendMessage(context.Background(),
					&sqs.SendMessageInput{QueueUrl: &started.QueueURL, MessageBody: new("20ms")})
				if err != nil {
					t.Errorf("sending: %v", err)
					return
				}
				l.mu.Lock()
				l.sent[*out.MessageId] = true
				l.mu.Unlock()
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	return l
}

func (l *load) stop() map[string]bool {
	l.cancel()
	l.all.Wait()
	return l.sent
}

func deploy(t *testing.T, dataDir string, started event, dir string) (status int, answer string) {
	t.Helper()
	status, answer, err := tryDeploy(t.Context(), dataDir, started, dir)
	if err != nil {
		t.Fatal(err)
	}
	return status, answer
}

func tryDeploy(ctx context.Context, dataDir string, started event, dir string) (status int, answer string, err error) {
	token, err := api.ReadToken(dataDir)
	if err != nil {
		return 0, "", err
	}
	body, _ := json.Marshal(map[string]string{"path": dir})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, started.Console+"/api/v1/deploy", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(resp.Body)
	return resp.StatusCode, text.String(), err
}

func awaitEmpty(t *testing.T, started event) {
	t.Helper()
	c := client(started.Endpoint)
	for range 600 {
		a := attributes(t.Context(), t, c, started.QueueURL)
		if a["ApproximateNumberOfMessages"] == "0" && a["ApproximateNumberOfMessagesNotVisible"] == "0" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the queue was not empty within a minute")
}

func checkLedger(t *testing.T, dir string, sent int64) {
	t.Helper()
	store, err := broker.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l, err := store.Ledger("jobs")
	if err != nil {
		t.Fatal(err)
	}
	if l.Sent != sent || l.Done != sent || l.Live != 0 || l.DeadLettered != 0 {
		t.Errorf("sent %d: the ledger is %+v", sent, l)
	}
}
