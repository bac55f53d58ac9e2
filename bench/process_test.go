package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

func role(b *testing.B, name string, settings ...string) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "BENCH_ROLE="+name), settings...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("%s did not say its address: %v", name, err)
	}
	return "http://" + strings.TrimSpace(line)
}

// buildTendril compiles the command as for a release, once per run. TENDRIL_BENCH_BINARY is the path of a command to
// use instead.
func buildTendril(b *testing.B) string {
	b.Helper()
	if bin := os.Getenv("TENDRIL_BENCH_BINARY"); bin != "" {
		return bin
	}
	bin := filepath.Join(b.TempDir(), "tendril")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "tendril/cmd/tendril")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		b.Fatalf("building tendril: %v\n%s", err, out)
	}
	return bin
}

type daemon struct {
	cmd     *exec.Cmd
	done    chan error
	log     string
	started time.Time
}

func startDaemon(b *testing.B, cmd *exec.Cmd, env []string) *daemon {
	b.Helper()
	cmd.Env = slices.Concat(os.Environ(), cmd.Env, env)
	log, err := os.Create(filepath.Join(b.TempDir(), "daemon.log"))
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	d := &daemon{cmd, make(chan error, 1), log.Name(), time.Now()}
	go func() { d.done <- cmd.Wait(); close(d.done); log.Close() }()
	b.Cleanup(func() { cmd.Process.Kill(); <-d.done })
	return d
}

func (d *daemon) stopped(b *testing.B) {
	b.Helper()
	select {
	case err := <-d.done:
		printed, _ := os.ReadFile(d.log)
		b.Fatalf("%s ended: %v\n%s", d.cmd.Path, err, testpeer.LastLines(string(printed)))
	default:
	}
}

func (d *daemon) stop(b *testing.B) (cpu time.Duration, rss int64, took time.Duration) {
	b.Helper()
	begin := time.Now()
	d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-d.done:
		if err != nil && filepath.Base(d.cmd.Path) == "tendril" {
			b.Fatalf("tendril did not stop cleanly: %v", err)
		}
	case <-time.After(20 * time.Second):
		d.cmd.Process.Kill()
		<-d.done
	}
	usage := d.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return d.cmd.ProcessState.UserTime() + d.cmd.ProcessState.SystemTime(), usage.Maxrss * 1024, time.Since(begin)
}

func (d *daemon) memory(b *testing.B) int64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", d.cmd.Process.Pid))
	if err != nil {
		b.Skipf("resident memory is read from /proc: %v", err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func (d *daemon) cpu(b *testing.B) time.Duration {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		b.Skipf("processor time is read from /proc: %v", err)
	}
	fields := strings.Fields(string(data)[strings.LastIndexByte(string(data), ')')+2:])
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func get(b *testing.B, url string, into any) {
	b.Helper()
	resp, err := http.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if into == nil {
		io.Copy(io.Discard, resp.Body)
	} else if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		b.Fatal(err)
	}
}

type seen struct{ N, First, Last int64 }

func (s seen) perSecond() float64 { return float64(s.N) / time.Duration(s.Last-s.First).Seconds() }

func waitFor(b *testing.B, app string, n int64, daemons ...*daemon) seen {
	b.Helper()
	var s seen
	await(b, fmt.Sprintf("the app did not see %d messages", n), func() bool {
		get(b, app+"/stats", &s)
		return s.N >= n
	}, daemons...)
	return s
}

func await(b *testing.B, failure string, so func() bool, daemons ...*daemon) {
	b.Helper()
	for limit := time.Now().Add(2 * time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		for _, d := range daemons {
			d.stopped(b)
		}
		if time.Now().After(limit) {
			b.Fatal(failure, " within two minutes")
		}
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
