package acceptance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"tendril/api"
	"tendril/internal/testing/testpeer"
)

// In these tests, the reader of tendril's output exits or stalls.

type piped struct {
	cmd           *exec.Cmd
	out           *bufio.Reader
	started       event
	dir, journal  string
	noise, silent string
	exited        chan struct{}
}

// noiseLines lines of 8 KB each exceed the buffers of a pipe and of tendril.
const noiseLines = 900

func pipe(t *testing.T, connect func(cmd *exec.Cmd) *os.File, args ...string) *piped {
	t.Helper()
	dir := t.TempDir()
	p := &piped{dir: t.TempDir(), journal: filepath.Join(dir, "journal"), noise: filepath.Join(dir, "noise"),
		silent: filepath.Join(dir, "silent"), exited: make(chan struct{})}
	app := writeBundle(t, map[string]string{"Procfile": appLine(p.journal, "1") +
		fmt.Sprintf("noise: while [ ! -e %s ]; do sleep 0.05; done; yes %s | head -n %d; touch %s; exec sleep 1000\n",
			p.noise, strings.Repeat("x", 8000), noiseLines, p.silent)})
	p.cmd = program(t, append(append([]string{"up", "--data-dir", p.dir, "--listen", "127.0.0.1:0", "--console",
		"127.0.0.1:0",
		"--port", testpeer.FreePort(t), "--name", "jobs"}, args...), app)...)
	p.cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir())
	p.out = bufio.NewReader(connect(p.cmd))
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.exited
	})
	for ready := false; !ready || p.started.Endpoint == ""; {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("the output ended before the app was ready: %v", err)
		}
		var e event
		if json.Unmarshal(line, &e) == nil && e.Msg == "started" {
			p.started = e
		}
		ready = ready || e.Msg == "process ready" && e.Process == "web"
	}
	return p
}

func osPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func stallable(t *testing.T, args ...string) (*piped, *os.File) {
	t.Helper()
	r, w := osPipe(t)
	p := pipe(t, func(cmd *exec.Cmd) *os.File {
		cmd.Stdout, cmd.Stderr = w, w
		return r
	}, args...)
	w.Close()
	return p, r
}

// fill makes the app print more than the buffers hold. The app must not wait for the reader.
func (p *piped) fill(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(p.noise, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(p.silent); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the app waits for who reads tendril's output")
		}
	}
}

func (p *piped) ends(t *testing.T) int {
	t.Helper()
	began := time.Now()
	select {
	case <-p.exited:
		t.Logf("it ended %v after the last signal: %v", time.Since(began).Round(10*time.Millisecond), p.cmd.ProcessState)
	case <-time.After(time.Minute):
		t.Fatalf("it has not ended within a minute of the last signal")
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *piped) drained(t *testing.T, ids ...string) {
	t.Helper()
	times, _ := readJournal(t, p.journal)
	for _, id := range ids {
		if times[id] != 1 {
			t.Errorf("the job %s was done %d times", id, times[id])
		}
	}
	for _, name := range []string{api.InstanceFile, api.TokenFile} {
		if _, err := os.Stat(filepath.Join(p.dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

func (p *piped) worksAndDrains(t *testing.T) {
	t.Helper()
	p.fill(t)
	before := sendBody(t, p.started, "1ms")
	eventually(t, "the short job is done", func() bool {
		times, _ := readJournal(t, p.journal)
		return times[before] > 0
	})
	id := sendBody(t, p.started, "700ms of work")
	inFlight(t, p.started)
	p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.ends(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	p.drained(t, before, id)
}

// Ctrl-C signals both programs of a pipeline with cat, and cat exits immediately.
func TestCtrlCInAPipelineDrains(t *testing.T) {
	t.Parallel()
	r, w := osPipe(t)
	shown, screen := osPipe(t)
	notIgnored := make(chan os.Signal, 1)
	signal.Notify(notIgnored, os.Interrupt) // programs in the background of a script ignore Ctrl-C, and so would cat
	defer signal.Stop(notIgnored)
	cat := exec.Command("cat")
	cat.Stdin, cat.Stdout = r, screen
	cat.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cat.Process.Kill() })
	p := pipe(t, func(cmd *exec.Cmd) *os.File {
		cmd.Stdout, cmd.Stderr = w, w
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: cat.Process.Pid}
		return shown
	})
	r.Close()
	w.Close()
	id := sendBody(t, p.started, "1s of work")
	inFlight(t, p.started)
	if err := syscall.Kill(-cat.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cat.Wait(); err == nil {
		t.Error("the reader outlived Ctrl-C")
	}
	if code := p.ends(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	p.drained(t, id)
}

func TestReaderThatHangsUpCostsNoWork(t *testing.T) {
	t.Parallel()
	p, r := stallable(t)
	r.Close()
	p.worksAndDrains(t)
}

func TestStalledReaderHoldsNothingUp(t *testing.T) {
	t.Parallel()
	p, _ := stallable(t)
	p.worksAndDrains(t)
}

func TestStalledReaderAndASecondSignal(t *testing.T) {
	t.Parallel()
	p, _ := stallable(t, "--app-grace", "1s")
	p.fill(t)
	sendBody(t, p.started, "stuck")
	inFlight(t, p.started)
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		t.Fatal("it ended with a job in work")
	case <-time.After(4 * time.Second): // signals that tendril handles within a second count once
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.ends(t); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit status %d", code)
	}
	p.drained(t)
}

func TestReaderThatReadsAgainLearnsWhatItMissed(t *testing.T) {
	t.Parallel()
	p, _ := stallable(t)
	p.fill(t)
	read := make(chan []byte)
	go func() {
		rest, _ := io.ReadAll(p.out)
		read <- rest
	}()
	id := sendBody(t, p.started, "2s of work")
	inFlight(t, p.started)
	p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.ends(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	p.drained(t, id)
	noise, missing, settled, last := 0, 0, 0, ""
	for line := range bytes.Lines(<-read) {
		var e struct {
			event
			Lines int `json:"lines"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%.200q: %v", line, err)
		}
		switch {
		case strings.Contains(e.Msg, "output not read"):
			missing += e.Lines
		case strings.HasPrefix(e.Line, "xxx"):
			noise++
		case e.MessageID == id:
			settled++
		}
		last = e.Msg
	}
	if missing == 0 || noise+missing < noiseLines || noise+missing > noiseLines+20 {
		t.Errorf("%d lines of %d were read, and %d are told to be missing", noise, noiseLines, missing)
	}
	if settled != 1 {
		t.Errorf("the job's end was printed %d times", settled)
	}
	t.Logf("%d lines of noise, %d missing, the last line: %s", noise, missing, last)
}

func TestShortCommandsEndWithTheirReader(t *testing.T) {
	t.Parallel()
	r, w := osPipe(t)
	r.Close()
	cmd := program(t, "version")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &said
	cmd.Run()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGPIPE ||
		said.Len() > 0 {
		t.Errorf("it ended with %v\n%s", cmd.ProcessState, &said)
	}
}

func TestExportReturnsMessagesThatNobodyReads(t *testing.T) {
	t.Parallel()
	_, started := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off")
	c := client(started.Endpoint)
	jobs := createQueue(t, c, "jobs", map[string]string{"VisibilityTimeout": "600"})
	const sent = 25
	for range sent {
		if _, err := c.SendMessage(t.Context(),
			&sqs.SendMessageInput{QueueUrl: &jobs, MessageBody: new(strings.Repeat("x", 2000))}); err != nil {
			t.Fatal(err)
		}
	}
	createQueue(t, c, "app",
		map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + attributes(t.Context(), t, c, jobs)["QueueArn"] +
			`","maxReceiveCount":"3"}`})
	r, w := osPipe(t)
	r.Close()
	cmd := program(t, "dead", "export", "--queue", strings.TrimSuffix(jobs, "jobs")+"app")
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_REGION=us-east-1",
		"XDG_CONFIG_HOME="+t.TempDir())
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &said
	cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGPIPE) ||
		strings.Contains(said.String(), "tendril:") {
		t.Errorf("exit status %d\n%s", code, &said)
	}
	if now := attributes(t.Context(), t, c, jobs); now["ApproximateNumberOfMessages"] != strconv.Itoa(sent) {
		t.Errorf("%s of %d messages are visible, %s in flight", now["ApproximateNumberOfMessages"], sent,
			now["ApproximateNumberOfMessagesNotVisible"])
	}
}
