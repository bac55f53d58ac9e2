package acceptance

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"tendril/internal/testing/testpeer"
)

// These tests cover the article "Gracefully shutting down worker nodes on Elastic Beanstalk".

func appUp(t *testing.T, files map[string]string, args ...string) (p *process, started event, port string) {
	t.Helper()
	port = testpeer.FreePort(t)
	args = append([]string{"up", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0",
		"--port", port, "--name", "jobs"}, args...)
	p, started = start(t, append(args, writeBundle(t, files))...)
	return p, started, port
}

func sendBody(t *testing.T, started event, body string) (id string) {
	t.Helper()
	out, err := client(started.Endpoint).SendMessage(t.Context(),
		&sqs.SendMessageInput{QueueUrl: &started.QueueURL, MessageBody: &body})
	if err != nil {
		t.Fatal(err)
	}
	return *out.MessageId
}

func inFlight(t *testing.T, started event) {
	t.Helper()
	c := client(started.Endpoint)
	eventually(t, "a message is in flight", func() bool {
		return attributes(t.Context(), t, c, started.QueueURL)["ApproximateNumberOfMessagesNotVisible"] != "0"
	})
}

func survivors(mark string) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), mark) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

// portFree waits for the app's port: a killed process loses its environment, which survivors reads, before its sockets
// are closed.
func portFree(t *testing.T, port string) {
	t.Helper()
	eventually(t, "the app's port is free", func() bool {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			l.Close()
		}
		return err == nil
	})
}

func TestStopDuringWork(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "journal")
	mark := "ACCEPTANCE_JOURNAL=" + journal
	p, started, port := appUp(t, map[string]string{"Procfile": appLine(journal, "1")})
	id := sendBody(t, started, "700ms of work")
	inFlight(t, started)
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if times, _ := readJournal(t, journal); times[id] != 1 {
		t.Errorf("the job was done %d times", times[id])
	}
	if left := survivors(mark); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
	portFree(t, port)
}

func TestStuckJob(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "journal")
	mark := "ACCEPTANCE_JOURNAL=" + journal
	files := map[string]string{
		"Procfile": appLine(journal, "1"),
		// The article's script reads this setting.
		".ebextensions/worker.config": "option_settings:\n  aws:elasticbeanstalk:application:environment:\n" +
			"    WORKER_SHUTDOWN_DELAY: 1\n",
	}
	p, started, port := appUp(t, files, "--shutdown-timeout", "1s")
	sendBody(t, started, "stuck")
	inFlight(t, started)
	began := time.Now()
	code := p.terminate(t)
	t.Logf("the stop took %v, exit status %d", time.Since(began).Round(10*time.Millisecond), code)
	if code != 3 {
		t.Errorf("exit status %d, want 3: drained late", code)
	}
	if left := survivors(mark); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
	portFree(t, port)
}

func TestCrashLoop(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "journal")
	once := filepath.Join(t.TempDir(), "once")
	line := strings.Replace(appLine(journal, "1"), "web: ",
		fmt.Sprintf("web: if [ -e %s ]; then exit 7; fi; touch %s; ", once, once), 1)
	p, started, _ := appUp(t, map[string]string{"Procfile": line}, "--restart-limit", "2", "--restart-window", "60")
	awaitWeb(t, p)
	id := sendBody(t, started, "poison") // crashes the app, which then cannot restart
	p.await(t, "the app was given up", func(e event) bool {
		return e.Level == "ERROR" &&
			e.Msg == "process failed too often" && strings.Contains(e.attribute("err"), "failed 3 times")
	})
	time.Sleep(5 * time.Second) // tendril has stopped waiting for the app
	a := attributes(t.Context(), t, client(started.Endpoint), started.QueueURL)
	if a["ApproximateNumberOfMessages"] == "" {
		t.Error("the queues are not served any more")
	}
	if p.cmd.ProcessState != nil {
		t.Errorf("the environment ended: %v", p.cmd.ProcessState)
	}
	for range 3 {
		sendBody(t, started, "1ms")
	}
	time.Sleep(time.Second)
	if n := attributes(t.Context(), t, client(started.Endpoint),
		started.QueueURL)["ApproximateNumberOfMessages"]; n != "3" {
		t.Errorf("%s messages are visible, want the 3 that nobody received (beside %s, which hides)", n, id)
	}
	p.terminate(t)
}

func awaitWeb(t *testing.T, p *process) {
	t.Helper()
	p.await(t, "the app was ready", func(e event) bool { return e.Msg == "process ready" && e.Process == "web" })
}

func buildingUp(t *testing.T) (p *process, mark string) {
	t.Helper()
	mark = "ACCEPTANCE_MARK=" + t.TempDir()
	p, _, _ = appUp(t, map[string]string{
		"Procfile":  appLine(filepath.Join(t.TempDir(), "journal"), "1"),
		"Buildfile": "build: " + mark + " sh -c 'sleep 1000 & echo on it; wait'\n",
	})
	p.await(t, "it builds", func(e event) bool { return e.Line == "on it" })
	return p, mark
}

func TestStopDuringTheStart(t *testing.T) {
	t.Parallel()
	p, mark := buildingUp(t)
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if left := survivors(mark); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
}

func TestStopDuringADeployment(t *testing.T) {
	t.Parallel()
	journal, mark := filepath.Join(t.TempDir(), "journal"), "ACCEPTANCE_MARK="+t.TempDir()
	s := open(t, t.TempDir(), nil, "--name", "jobs", "--port", testpeer.FreePort(t),
		writeBundle(t, map[string]string{"Procfile": appLine(journal, "1")}))
	awaitWeb(t, s.process)
	deployed := make(chan string)
	go func() {
		out, code := s.do("deploy", writeBundle(t, map[string]string{
			"Procfile": appLine(journal, "2"), "Buildfile": "build: " + mark + " sh -c 'sleep 1000 & echo on it; wait'\n",
		}))
		deployed <- fmt.Sprint(code, out)
	}()
	s.await(t, "it builds", func(e event) bool { return e.Line == "on it" })
	id := sendBody(t, s.started, "500ms")
	inFlight(t, s.started)
	if code := s.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if out := <-deployed; !strings.HasPrefix(out, "1") {
		t.Errorf("tendril deploy: %s", out)
	} else {
		t.Log(out)
	}
	if times, versions := readJournal(t, journal); times[id] != 1 || versions["1"] != 1 {
		t.Errorf("the job was done %d times, by %v", times[id], versions)
	}
	if left := survivors(mark); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
}

func TestKilledTendrilLeavesNoBuild(t *testing.T) {
	t.Parallel()
	p, mark := buildingUp(t)
	if len(survivors(mark)) < 2 {
		t.Fatal("the mark does not find the build and its child")
	}
	p.kill()
	awaitNone(t, mark)
}

func awaitNone(t *testing.T, mark string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); len(survivors(mark)) > 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	if left := survivors(mark); len(left) > 0 {
		t.Errorf("orphans: %v", left)
	}
}

func TestKilledTendrilLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "journal")
	mark := "ACCEPTANCE_JOURNAL=" + journal
	line := strings.Replace(appLine(journal, "1"), " exec ",
		" ; export ACCEPTANCE_ROLE ACCEPTANCE_JOURNAL; sleep 1000 & ", 1)
	p, _, port := appUp(t, map[string]string{"Procfile": line})
	awaitWeb(t, p)
	if len(survivors(mark)) == 0 {
		t.Fatal("the mark does not find the app")
	}
	p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.exited
	awaitNone(t, mark)
	portFree(t, port)
}
