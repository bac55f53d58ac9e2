package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

type articleMachine struct {
	*process
	started event
	work    string
}

func startArticle(t *testing.T) *articleMachine {
	t.Helper()
	testpeer.Program(t, "node")
	testpeer.MountNamespace(t)
	work := t.TempDir()
	for name, from := range map[string]string{"tendril": binary, "container.sh": "testdata/container.sh"} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(work, name), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(work, "article"), os.DirFS("testdata/bundles/shutdown")); err != nil {
		t.Fatal(err)
	}
	p := launchCommand(t, exec.Command("unshare", "--mount", filepath.Join(work, "container.sh"), work, "./tendril", "up",
		"article", "--machine-sections", "apply", "--app-user", "nobody", "--data-dir", "/mnt/data", "--listen",
		"127.0.0.1:0", "--console", "127.0.0.1:0", "--port", testpeer.FreePort(t)))
	m := &articleMachine{process: p, work: work}
	m.started = p.await(t, "it started", func(e event) bool { return e.Msg == "started" })
	return m
}

func (m *articleMachine) run(args ...string) (output string, err error) {
	in := append([]string{"--target", strconv.Itoa(m.cmd.Process.Pid), "--mount", "sh", "-c", `cd /mnt && exec "$@"`, ""},
		args...)
	out, err := exec.Command("nsenter", in...).CombinedOutput()
	return string(out), err
}

func (m *articleMachine) awaitLog(t *testing.T, pattern string) string {
	t.Helper()
	line := regexp.MustCompile("(?m)^" + pattern + "$")
	var text []byte
	for range 1500 {
		text, _ = os.ReadFile(fmt.Sprintf("/proc/%d/root/tmp/worker.log", m.cmd.Process.Pid))
		if found := line.FindSubmatch(text); found != nil {
			return string(found[len(found)-1])
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the worker did not write %s:\n%s", pattern, text)
	return ""
}

func (m *articleMachine) whileAtWork(t *testing.T, name string, stop func() error) (worker string) {
	t.Helper()
	m.sendJob(t, fmt.Sprintf(`{"name":%q,"until":"/mnt/%[1]s.end"}`, name))
	m.awaitLog(t, "begun "+name)
	pid, err := m.run("cat", "/tmp/worker.pid")
	if err != nil {
		t.Fatal(err, pid)
	}
	pid = strings.TrimSpace(pid)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	m.awaitLog(t, "worker ("+pid+") takes no more jobs")
	if err := os.WriteFile(filepath.Join(m.work, name+".end"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	return m.awaitLog(t, "done "+name+` by (\d+), stopping true`)
}

func (m *articleMachine) sendJob(t *testing.T, body string) {
	t.Helper()
	c := client(m.started.Endpoint)
	url := createQueue(t, c, "jobs", nil)
	started := m.started
	started.QueueURL = url
	sendBody(t, started, body)
}

// The bundle comes unchanged from the article "Gracefully shutting down worker nodes on Elastic Beanstalk".
func TestShutdownArticle(t *testing.T) {
	long(t)
	t.Parallel()
	m := startArticle(t)
	first := m.awaitLog(t, `worker (\d+) takes jobs, greeting hello`)

	deploy := func(args ...string) func() error {
		return func() error {
			out, err := m.run(append([]string{"./tendril"}, args...)...)
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, out)
			}
			return err
		}
	}
	if err := os.CopyFS(filepath.Join(m.work, "second"), os.DirFS(filepath.Join(m.work, "article"))); err != nil {
		t.Fatal(err)
	}
	replaceIn(t, filepath.Join(m.work, "second/.ebextensions/worker.config"), "value: hello", "value: welcome")
	if did := m.whileAtWork(t, "one", deploy("deploy", "second", "--data-dir", "/mnt/data")); did != first {
		t.Errorf("the job in work at the deployment was done by %s, not by %s", did, first)
	}
	second := m.awaitLog(t, `worker (\d+) takes jobs, greeting welcome`)
	if current, err := m.run("readlink", "/var/app/current"); err != nil ||
		!regexp.MustCompile(`^/mnt/data/versions/[^/]+/second\n$`).MatchString(current) {
		t.Errorf("/var/app/current leads to %q, %v", current, err)
	}

	if did := m.whileAtWork(t, "two", deploy("deploy", "--data-dir", "/mnt/data")); did != second {
		t.Errorf("the job in work at the restart was done by %s, not by %s", did, second)
	}
	m.awaitHook(t, "restartappserver post")

	replaceIn(t, filepath.Join(m.work, "second/.ebextensions/worker.config"), "value: welcome", "value: goodbye")
	m.whileAtWork(t, "three", deploy("reload", "--data-dir", "/mnt/data"))
	m.awaitHook(t, "configdeploy post")
	last := m.awaitLog(t, `worker (\d+) takes jobs, greeting goodbye`)

	m.sendJob(t, `{"crash":true}`)
	m.awaitLog(t, "Worker crashed, restarting")
	m.sendJob(t, `{"name":"four"}`)
	if did := m.awaitLog(t, `done four by (\d+), stopping false`); did == last {
		t.Errorf("the crashed worker %s did a job", did)
	}

	m.whileAtWork(t, "five", func() error {
		out, err := m.run("/etc/init.d/worker", "stop")
		if err != nil || !strings.Contains(out, "[Stopped]") {
			return fmt.Errorf("%v\n%s", err, out)
		}
		return nil
	})
	if code := m.terminate(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func (m *articleMachine) awaitHook(t *testing.T, phase string) {
	t.Helper()
	m.await(t, "the hooks of "+phase, func(e event) bool { return e.attribute("phase") == phase })
}
