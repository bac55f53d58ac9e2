package acceptance

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"golang.org/x/sys/unix"

	"tendril/internal/testing/testpeer"
)

func ownMounts(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // never unlocked, so that the thread exits with the goroutine
	if err := unix.Unshare(unix.CLONE_NEWNS); err == nil {
		err = unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		if err != nil {
			t.Fatalf("making the mounts private: %v", err)
		}
	} else if os.Getenv("TENDRIL_REQUIRE_PEERS") == "1" {
		t.Fatalf("making a mount namespace: %v", err)
	} else {
		t.Skipf("NOT TESTED: making a mount namespace: %v", err)
	}
}

func TestFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	resume(t)
	ownMounts(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=0700"); err != nil {
		t.Fatalf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	app := newRecorder(t, time.Millisecond)
	var down atomic.Bool
	down.Store(true)
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		app.serve(w, r)
	}))
	t.Cleanup(gate.Close)
	args := []string{"up", "--data-dir", dir, "--listen", "127.0.0.1:0", "--console", "off", "--name", "jobs", "--target",
		gate.URL, "--http-connections", "1", "--error-visibility-timeout", "1", "--max-retries", "1000"}
	p, started := start(t, args...)
	c, body := client(started.Endpoint), strings.Repeat("x", 200_000)
	accepted, refused := 0, 0
	send := func() error {
		_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &started.QueueURL, MessageBody: &body})
		var api smithy.APIError
		switch {
		case err == nil:
			accepted++
		case errors.As(err, &api) && strings.Contains(api.ErrorMessage(), "has no space"):
			refused++
		default:
			t.Fatalf("a send on a full disk: %v", err)
		}
		return err
	}
	for refused < 20 {
		if send(); accepted > 1000 {
			t.Fatal("200 MB were accepted on a disk of 64 MB")
		}
	}
	down.Store(false)
	app.waitDone(t, accepted)
	awaitQuiet(t, started)
	emptied := time.Now()
	for send() != nil {
		if time.Since(emptied) > 30*time.Second {
			t.Fatal("no send was accepted within half a minute of the end of the backlog")
		}
		time.Sleep(50 * time.Millisecond)
	}
	recovered := time.Since(emptied)
	app.waitDone(t, accepted)
	awaitQuiet(t, started)
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	checkLedger(t, dir, int64(accepted))
	report(t, "%d sends accepted, %d refused for want of space: lost 0 of %d; sends accepted again after %s", accepted,
		refused, accepted, recovered.Round(10*time.Millisecond))

	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatalf("making the disk read-only: %v", err)
	}
	p = launch(t, args...)
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		t.Fatal("tendril did not end on a read-only disk")
	}
	if code := p.cmd.ProcessState.ExitCode(); code == 0 || !strings.Contains(p.stderr.All(), "read-only") {
		t.Errorf("exit status %d on a read-only disk", code)
	}
}

func TestNameOfTheQueueFailsAndMoves(t *testing.T) {
	long(t)
	t.Parallel()
	resume(t)
	ownMounts(t)
	dir := t.TempDir()
	hosts, resolver := filepath.Join(dir, "hosts"), filepath.Join(dir, "resolv.conf")
	is := func(address string) {
		if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"+address), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is("127.0.0.1 queue.test\n")
	if err := os.WriteFile(resolver, []byte("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{hosts: "/etc/hosts", resolver: "/etc/resolv.conf"} {
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			t.Fatalf("replacing %s: %v", to, err)
		}
	}
	app := newRecorder(t, time.Millisecond)
	_, served := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off")
	c := client(served.Endpoint)
	url := createQueue(t, c, "jobs", nil)
	first := newFaultProxy(t, served.Endpoint, 1)
	_, port, _ := net.SplitHostPort(first.Listener.Addr().String())
	l, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Fatal(err)
	}
	second := &httptest.Server{Listener: l, Config: &http.Server{Handler: first}}
	second.Start()
	t.Cleanup(second.Close)
	p, _ := start(t, "up", "--name", "jobs", "--data-dir", dir, "--queue-url", "http://queue.test:"+port+
		"/000000000000/jobs", "--endpoint-url", "http://queue.test:"+port, "--target", app.URL, "--console", "off",
		"--wait-time", "1s")
	sendMany(t, c, url, 20)
	app.waitDone(t, 20)

	is("")
	first.Close()
	sendMany(t, c, url, 20)
	time.Sleep(8 * time.Second) // longer than DNS results are cached
	if app.mu.Lock(); len(app.done) > 20 {
		t.Errorf("%d messages were done without a name for the queue", len(app.done)-20)
	}
	app.mu.Unlock()
	is("127.0.0.2 queue.test\n")
	moved := time.Now()
	app.waitDone(t, 40)
	resumed := time.Since(moved)
	if resumed > 30*time.Second {
		t.Errorf("work was resumed %s after the name came back", resumed)
	}
	if n := app.repeats(); n > 0 {
		t.Errorf("%d messages were posted twice", n)
	}
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	report(t, "the queue's name failed and moved once: 40 messages, lost 0, worked on again 0; work was resumed after %s",
		resumed.Round(100*time.Millisecond))
}

// Failed connections must not count as receives.
func TestFewPortsAreNotTheAppsFailure(t *testing.T) {
	t.Parallel()
	resume(t)
	ownNetwork(t)
	const ports, connections, messages = 8, 40, 100
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("40000 40007"), 0o644); err != nil {
		t.Skipf("NOT TESTED: setting the range of ports: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:20001")
	if err != nil {
		t.Fatal(err)
	}
	app := &recorder{work: 30 * time.Millisecond, posts: map[string]int{}, done: map[string]int{},
		news: make(chan struct{}, 1)}
	app.Server = &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(app.serve)}}
	app.Start()
	t.Cleanup(app.Close)
	dir := t.TempDir()
	p, _ := start(t, "up", "--data-dir", dir, "--listen", "127.0.0.1:20002", "--console", "127.0.0.1:20003", "--name",
		"jobs", "--target", app.URL, "--http-connections", strconv.Itoa(connections), "--max-retries", "2",
		"--error-visibility-timeout", "1")
	// Commands started by this thread are in the test's network namespace, but its HTTP client may not be.
	send := exec.Command(binary, "send", "--data-dir", dir, "--ndjson")
	send.Env = append(os.Environ(), "AWS_EC2_METADATA_DISABLED=true")
	send.Stdin = strings.NewReader(strings.Repeat("{\"body\": \"work\"}\n", messages))
	if out, err := send.CombinedOutput(); err != nil {
		t.Fatalf("sending: %v\n%s", err, out)
	}
	app.waitDone(t, messages)
	if app.most > ports || app.most < ports/2 {
		t.Errorf("%d POSTs at once over %d ports: nothing was shown", app.most, ports)
	}
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	checkLedger(t, dir, messages)
	report(t, "%d messages with %d connections over %d ports: lost 0, dead-lettered 0, worked on again %d", messages,
		connections, ports, app.repeats())
}

func memoryGroup(t *testing.T, bytes int) (dir string) {
	t.Helper()
	for _, kind := range []struct{ root, limit, swap string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max", "memory.swap.max"},
	} {
		if dir = controlGroup(t, kind.root, kind.limit, strconv.Itoa(bytes)); dir != "" {
			_ = os.WriteFile(filepath.Join(dir, kind.swap), []byte("0"), 0o644) // fails if there is no swap
			return dir
		}
	}
	t.Skip("NOT TESTED: no control group for memory can be made")
	return ""
}

func startInGroup(t *testing.T, group string, args ...string) (*process, event) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `echo $$ > "$0"/cgroup.procs && exec "$@"`, group,
		program(t).Path}, args...)...)
	p := launchCommand(t, cmd)
	return p, p.await(t, "it started", func(e event) bool { return e.Msg == "started" })
}

func TestLittleMemory(t *testing.T) {
	t.Parallel()
	resume(t)
	const limit, bodies = 128 << 20, 150
	group, appGroup := memoryGroup(t, limit), memoryGroup(t, limit)
	journal, data := filepath.Join(t.TempDir(), "journal"), t.TempDir()
	port := testpeer.FreePort(t)
	p, started := startInGroup(t, group, "up", "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "off",
		"--port", port, "--name", "jobs", "--http-connections", "50", "--max-retries", "3", "--error-visibility-timeout", "1",
		"--visibility-timeout", "20", writeBundle(t, map[string]string{"Procfile": "web: echo $$ > " + appGroup +
			"/cgroup.procs && " + strings.TrimPrefix(appLine(journal, "1"), "web: ")}))
	c := client(started.Endpoint)
	for i := range bodies {
		body := fmt.Sprintf("1ms %d %s", i, strings.Repeat("x", 900_000))
		if i == bodies/2 {
			body = "hog"
		}
		if _, err := c.SendMessage(t.Context(),
			&sqs.SendMessageInput{QueueUrl: &started.QueueURL, MessageBody: &body}); err != nil {
			t.Fatalf("sending %d: %v", i, err)
		}
	}
	awaitQuiet(t, started)
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	times, _ := readJournal(t, journal)
	dead := stored(t, data, "jobs-dead")
	deaths := p.count(func(e event) bool {
		return e.Msg == "process exited" && strings.Contains(e.raw, syscall.SIGKILL.String())
	})
	if len(times) != bodies-1 || len(dead) != 1 || dead[0].Body != "hog" {
		t.Errorf("%d of %d messages done, %d dead-lettered; want all but one", len(times), bodies, len(dead))
	}
	if deaths == 0 {
		t.Error("the app was never killed: nothing was shown")
	}
	if left := survivors("ACCEPTANCE_JOURNAL=" + journal); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
	report(t, "%d messages of 0.9 MB in %d MB of memory, and one for which the app takes more: lost 0 of %d, "+
		"dead-lettered without cause 0; the app was killed for want of memory %d times", bodies, limit>>20, bodies, deaths)
}

// tendril drains 300 messages of 1 MiB while more are sent, in the memory that sidecar.yaml requests.
func TestBacklogOfLargeMessagesDrainsInLittleMemory(t *testing.T) {
	t.Parallel()
	resume(t)
	const messages, producers, more = 300, 5, 10
	mebibytes := sidecarMemory(t)
	group := memoryGroup(t, mebibytes<<20)
	app, data := newRecorder(t, 50*time.Millisecond), t.TempDir()
	args := []string{"up", "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "off", "--name", "jobs", "--target",
		app.URL, "--http-connections", "50"}
	fillWithLargeMessages(t, data, messages)
	p, started := startInGroup(t, group, args...)
	var sending sync.WaitGroup
	for producer := range producers {
		sending.Go(func() {
			for i := range more {
				if err := sendLarge(t, started, fmt.Sprint("more ", producer, " ", i)); err != nil {
					t.Errorf("sending to a busy queue: %v", err)
				}
			}
		})
	}
	sending.Wait()
	app.waitDone(t, messages+producers*more)
	awaitQuiet(t, started)
	if n := app.repeats(); n > 0 {
		t.Errorf("%d messages were posted again", n)
	}
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d\n%s", code, p.stderr)
	}
	report(t, "%d waiting messages of 1 MiB and %d new ones with 50 connections in %d MiB of memory: lost 0, posted again 0, "+
		"processes killed 0", messages, producers*more, mebibytes)
}

func sidecarMemory(t *testing.T) int {
	t.Helper()
	shipped, err := os.ReadFile("../deploy/kubernetes/sidecar.yaml")
	if err != nil {
		t.Fatal(err)
	}
	request := regexp.MustCompile(`requests: \{cpu: 50m, memory: (\d+)Mi\}`).FindSubmatch(shipped)
	if request == nil {
		t.Fatal("the shipped sidecar requests no memory")
	}
	mebibytes, _ := strconv.Atoi(string(request[1]))
	return mebibytes
}

func sendLarge(t *testing.T, to event, name string) error {
	body := name + strings.Repeat("x", 1<<20-len(name))
	_, err := client(to.Endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &to.QueueURL, MessageBody: &body})
	return err
}

func fillWithLargeMessages(t *testing.T, data string, messages int) {
	t.Helper()
	p, started := start(t, "serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "off")
	started.QueueURL = createQueue(t, client(started.Endpoint), "jobs", nil)
	for i := range messages {
		if err := sendLarge(t, started, strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	p.terminate(t)
}

// Each of 50 programs requests ten messages of 1 MiB at a time, and gets fewer.
func TestReceiversOfLargeMessagesFitInLittleMemory(t *testing.T) {
	t.Parallel()
	const messages, receivers = 150, 50
	data := t.TempDir()
	group := memoryGroup(t, sidecarMemory(t)<<20)
	fillWithLargeMessages(t, data, messages)
	p, started := startInGroup(t, group, "serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--console", "off")
	jobs := createQueue(t, client(started.Endpoint), "jobs", nil)
	var received atomic.Int64
	var all sync.WaitGroup
	for range receivers {
		all.Go(func() {
			c := client(started.Endpoint)
			for received.Load() < messages && !t.Failed() {
				out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &jobs, MaxNumberOfMessages: 10,
					VisibilityTimeout: 600, WaitTimeSeconds: 1})
				var api smithy.APIError
				if errors.As(err, &api) && strings.Contains(api.ErrorCode(), "Throttled") {
					continue
				}
				if err != nil {
					t.Errorf("receiving: %v", err)
					return
				}
				received.Add(int64(len(out.Messages)))
			}
		})
	}
	all.Wait()
	if received.Load() != messages {
		t.Errorf("%d of %d messages were received", received.Load(), messages)
	}
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d\n%s", code, p.stderr)
	}
}

func TestTooLittleMemoryIsRefused(t *testing.T) {
	t.Parallel()
	group := memoryGroup(t, 32<<20)
	cmd := exec.Command("sh", "-c", `echo $$ > "$0"/cgroup.procs && exec "$@"`, group, program(t).Path, "serve",
		"--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "32 MiB") || !strings.Contains(string(out), "at least 48 MiB") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestLittleCPU(t *testing.T) {
	t.Parallel()
	resume(t)
	messages := testpeer.Size(20, 200)
	group := cpuGroup(t, 2)
	app := newRecorder(t, 12*time.Second)
	dir := t.TempDir()
	p, started := start(t, "up", "--data-dir", dir, "--listen", "127.0.0.1:0", "--console", "off", "--name", "jobs",
		"--target", app.URL, "--http-connections", "20", "--visibility-timeout", "10")
	procs := filepath.Join(group, "cgroup.procs")
	if err := os.WriteFile(procs, []byte(strconv.Itoa(p.cmd.Process.Pid)), 0o644); err != nil {
		t.Fatal(err)
	}
	sendMany(t, client(started.Endpoint), started.QueueURL, messages)
	app.waitDone(t, messages)
	awaitQuiet(t, started)
	stat, err := os.ReadFile(filepath.Join(group, "cpu.stat"))
	if err != nil {
		t.Fatal(err)
	}
	throttled := 0
	for line := range strings.Lines(string(stat)) {
		if _, err := fmt.Sscanf(line, "nr_throttled %d", &throttled); err == nil {
			break
		}
	}
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	checkLedger(t, dir, int64(messages))
	if n := app.repeats(); n > 0 || throttled == 0 {
		t.Errorf("%d messages were posted again; the processor was withheld %d times", n, throttled)
	}
	report(t, "%d messages of 12 s with a visibility timeout of 10 s and 2 %% of a processor, which was withheld %d times: "+
		"lost 0, worked on again 0", messages, throttled)
}

func cpuGroup(t *testing.T, percent int) (dir string) {
	t.Helper()
	const period = 100_000
	quota := strconv.Itoa(percent * period / 100)
	for _, kind := range []struct{ root, file, text string }{
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", quota},
		{"/sys/fs/cgroup", "cpu.max", quota + " " + strconv.Itoa(period)},
	} {
		if dir = controlGroup(t, kind.root, kind.file, kind.text); dir != "" {
			return dir
		}
	}
	t.Skip("NOT TESTED: no control group for processor time can be made")
	return ""
}

func controlGroup(t *testing.T, root, file, text string) (dir string) {
	t.Helper()
	dir = filepath.Join(root, fmt.Sprintf("tendril-acceptance-%d-%d", os.Getpid(), time.Now().UnixNano()))
	if os.Mkdir(dir, 0o755) != nil {
		return ""
	}
	t.Cleanup(func() {
		for range 100 {
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	if os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644) != nil {
		return ""
	}
	return dir
}
