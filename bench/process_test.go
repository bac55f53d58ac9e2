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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// role starts this test binary in another role and returns its address.
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

// buildTendril compiles the command once per benchmark run.
func buildTendril(b *testing.B) string {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "tendril")
	out, err := exec.Command("go", "build", "-o", bin, "tendril/cmd/tendril").CombinedOutput()
	if err != nil {
		b.Fatalf("building tendril: %v\n%s", err, out)
	}
	return bin
}

// daemon is one running tendril.
type daemon struct {
	cmd  *exec.Cmd
	done chan error
}

func startDaemon(b *testing.B, bin string, env []string, args ...string) *daemon {
	b.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), env...)
	log, err := os.Create(filepath.Join(b.TempDir(), "tendril.log"))
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	d := &daemon{cmd, make(chan error, 1)}
	go func() { d.done <- cmd.Wait(); log.Close() }()
	b.Cleanup(func() { cmd.Process.Kill() })
	return d
}

// stop sends TERM and returns the CPU time that the daemon used in all, its
// peak memory in bytes and how long it took to go.
func (d *daemon) stop(b *testing.B) (cpu time.Duration, rss int64, took time.Duration) {
	b.Helper()
	begin := time.Now()
	d.cmd.Process.Signal(syscall.SIGTERM)
	if err := <-d.done; err != nil {
		b.Fatalf("tendril did not stop cleanly: %v", err)
	}
	usage := d.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return d.cmd.ProcessState.UserTime() + d.cmd.ProcessState.SystemTime(), usage.Maxrss * 1024, time.Since(begin)
}

// memory returns the resident set of a running process in bytes.
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

// cpu returns the processor time that a running process has used so far.
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

// seen is what the app says of itself.
type seen struct{ N, First, Last int64 }

func (s seen) perSecond() float64 { return float64(s.N) / time.Duration(s.Last-s.First).Seconds() }

// waitFor polls the app until it has seen n messages and returns its account.
func waitFor(b *testing.B, app string, n int64) seen {
	b.Helper()
	for limit := time.Now().Add(2 * time.Minute); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		var s seen
		if get(b, app+"/stats", &s); s.N >= n {
			return s
		}
	}
	b.Fatalf("the app did not see %d messages within two minutes", n)
	return seen{}
}

// median returns the middle of the values.
func median(values []float64) float64 {
	sorted := append([]float64(nil), values...)
	for i := range sorted {
		for j := i; j > 0 && sorted[j] < sorted[j-1]; j-- {
			sorted[j], sorted[j-1] = sorted[j-1], sorted[j]
		}
	}
	return sorted[len(sorted)/2]
}
