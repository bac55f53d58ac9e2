package runtimeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"tendril/internal/testing/testpeer"
)

const roleVariable = "RUNTIMEAPI_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(testpeer.Contained(m))
}

func play(role string) int {
	switch role {
	case "function":
		return playFunction()
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		return playFunction()
	case "wrapped":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), roleVariable+"=function")
		return child.Run().(*exec.ExitError).ExitCode()
	case "child":
		_, _ = attend()
		select {}
	case "pool":
		return playPool()
	case "foreign":
		return playForeignClient()
	}
	return 99
}

func attend() (net.Conn, error) {
	conn, err := net.Dial("tcp4", os.Getenv("OBSERVER"))
	if err == nil {
		_, err = fmt.Fprintln(conn, os.Getpid())
	}
	return conn, err
}

func playFunction() int {
	base := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/invocation/"
	for {
		resp, err := http.Get(base + "next")
		if err != nil || resp.StatusCode != 200 {
			return 90
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		answer, err := act(string(body))
		if err != nil {
			return 91
		}
		resp, err = http.Post(base+resp.Header.Get("Lambda-Runtime-Aws-Request-Id")+"/response", "application/json",
			bytes.NewReader(answer))
		if err != nil || resp.StatusCode != 202 {
			return 92
		}
		resp.Body.Close()
	}
}

func act(how string) ([]byte, error) {
	if url, ok := strings.CutPrefix(how, "ask "); ok {
		status, err := ask(url, "")
		return []byte(status), err
	}
	switch how {
	case "environment":
		dir, _ := os.Getwd()
		return json.Marshal(append(os.Environ(), "cwd="+dir))
	case "print":
		fmt.Print("a line\nand \x1b[31mred\r\n")
		fmt.Fprint(os.Stderr, strings.Repeat("x", 16<<10+10), "\nno end")
	case "crash":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "meet":
		conn, err := attend()
		if err != nil {
			return nil, err
		}
		_, err = io.ReadFull(conn, make([]byte, 1))
		return nil, err
	case "family", "hang", "leave": // one in its own process group, one in another
		for range 2 {
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), roleVariable+"=child")
			if err := child.Start(); err != nil {
				return nil, err
			}
		}
		conn, err := attend()
		if err != nil {
			return nil, err
		}
		switch how {
		case "hang":
			select {}
		case "leave":
			_, _ = conn.Read(make([]byte, 1))
			os.Exit(3)
		}
	}
	return []byte("did " + how), nil
}

func playPool() int {
	p, err := New(Options{Command: []string{os.Args[0]}, Env: functionEnv("wrapped", os.Getenv("OBSERVER"))})
	if err != nil {
		return 1
	}
	p.Start()
	if _, err := p.Invoke(context.Background(), []byte("family"), nil); err != nil {
		return 2
	}
	fmt.Println("running")
	select {}
}

func functionEnv(role, observer string) []string {
	return []string{roleVariable + "=" + role, "OBSERVER=" + observer, "PATH=" + os.Getenv("PATH")}
}

type observer struct {
	t  *testing.T
	ln net.Listener
}

func newObserver(t *testing.T) *observer {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return &observer{t, ln}
}

func (w *observer) meet() *reportingChild {
	g := w.tryMeet()
	if g == nil {
		w.t.Fatal("the observer was closed")
	}
	return g
}

// tryMeet returns nil if the observer was closed, or the child was killed first.
func (w *observer) tryMeet() *reportingChild {
	conn, err := w.ln.Accept()
	if err != nil {
		return nil
	}
	w.t.Cleanup(func() { conn.Close() })
	g := &reportingChild{w.t, conn, 0}
	if _, err := fmt.Fscanln(conn, &g.pid); err != nil {
		return nil
	}
	return g
}

type reportingChild struct {
	t    *testing.T
	conn net.Conn
	pid  int
}

func (g *reportingChild) awaitGone() {
	if n, _ := g.conn.Read(make([]byte, 1)); n > 0 {
		g.t.Error("a process talked that should be gone")
	}
}

func newRealPool(t *testing.T, role string, w *observer, o Options) *Pool {
	t.Helper()
	o.Command, o.Dir = []string{os.Args[0]}, t.TempDir()
	address := ""
	if w != nil {
		address = w.ln.Addr().String()
	}
	o.Env = append(o.Env, functionEnv(role, address)...)
	return runPool(t, o)
}

func runPool(t *testing.T, o Options) *Pool {
	t.Helper()
	if !filepath.IsAbs(o.Command[0]) && strings.Contains(o.Command[0], "/") {
		t.Fatalf("command %s is not absolute", o.Command[0])
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	p.Start()
	t.Cleanup(func() {
		if err := p.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}
