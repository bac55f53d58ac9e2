package runtimeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestForeignClientsAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reported []Refused
		p, h := newFakePool(t, Options{Events: Events{Refused: func(r Refused) {
			reported = append(reported, r)
		}}}, func(f *function) Exit {
			e, err := f.next()
			if err != nil {
				return Exit{}
			}
			f.client.CloseIdleConnections()
			f.disowned.Store(true)
			for range 11 {
				if status, text := f.post("invocation/"+e.id+"/response", "theirs"); status != 403 ||
					!strings.Contains(text, "only the function's own process") {
					t.Errorf("response of a foreign client: %d %s", status, text)
				}
			}
			if _, err := f.next(); err == nil || !strings.Contains(err.Error(), "403") {
				t.Errorf("next of a foreign client: %v", err)
			}
			f.disowned.Store(false)
			if status, _ := f.post("invocation/"+e.id+"/response", "ours"); status != 202 {
				t.Errorf("the function's own response: %d", status)
			}
			return echo(f)
		})
		defer stop(t, p, h)
		if a := invoke(t, p, "x"); string(a.Payload) != "ours" {
			t.Errorf("answer %q", a.Payload)
		}
		want := []Refused{{1, "a client", 1}, {1, "a client", 10}}
		if !slices.Equal(reported, want) {
			t.Errorf("reported %+v, want %+v", reported, want)
		}
	})
}

func TestIdleConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := newFakePool(t, Options{}, echo)
		defer stop(t, p, h)
		invoke(t, p, "x")
		began := time.Now()
		var idle []net.Conn
		for _, l := range h.listeners {
			for range 5 * maxConnections {
				conn, err := l.dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				idle = append(idle, conn)
				synctest.Wait()
			}
		}
		for i, conn := range idle[:4*maxConnections] {
			if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
				t.Errorf("connection %d: read %d, %v", i, n, err)
			}
		}
		if after := time.Since(began); after > time.Second {
			t.Errorf("they were closed after %s", after)
		}
		if a := invoke(t, p, "still here"); string(a.Payload) != "still here" {
			t.Errorf("answer %q", a.Payload)
		}
	})
}

func runtimeOf(t *testing.T, p *Pool) string {
	t.Helper()
	var env []string
	if err := json.Unmarshal(invoke(t, p, "environment").Payload, &env); err != nil {
		t.Fatal(err)
	}
	return "http://" + lookup(env, "AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/"
}

func (s foreignClient) status(t *testing.T, url, body string) string {
	t.Helper()
	cmd := exec.Command(s.program)
	cmd.Env, cmd.Dir = append(functionEnv("foreign", ""), "URL="+url, "BODY="+body), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: s.as}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

type foreignClient struct {
	program string
	as      *syscall.Credential
}

func playForeignClient() int {
	resp, err := ask(os.Getenv("URL"), os.Getenv("BODY"))
	if err != nil {
		return 1
	}
	fmt.Print(resp)
	return 0
}

const answerTime = 30 * time.Second

func ask(url, body string) (string, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: answerTime}
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.Status, err
}

func TestRealForeignClientsAreRefused(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux shows whose a connection is")
	}
	w := newObserver(t)
	refused := make(chan Refused, 100)
	p := newRealPool(t, "wrapped", w, Options{Instances: 2, Events: Events{Refused: func(r Refused) { refused <- r }}})
	api := runtimeOf(t, p)
	if got, err := ask(api+"invocation/next", ""); err != nil || got != "403 Forbidden" {
		t.Fatalf("this process: %s, %v", got, err)
	}
	select {
	case r := <-refused:
		if r.Total != 1 ||
			!strings.Contains(r.Client, fmt.Sprintf("(pid %d) of user %d", os.Getpid(), os.Geteuid())) {
			t.Errorf("refused %+v, want this process", r)
		}
	case <-time.After(answerTime):
		t.Fatal("this process was refused, and no event says so")
	}
	others := map[string]foreignClient{"the same user": {program: os.Args[0]}}
	if os.Geteuid() == 0 {
		others["another user"] = foreignClient{copySelf(t), &syscall.Credential{Uid: 54331, Gid: 54331}}
	}
	for name, s := range others {
		for path, body := range map[string]string{"invocation/next": "", "invocation/1/response": "{}", "init/error": "{}"} {
			if got := s.status(t, api+path, body); got != "403 Forbidden" {
				t.Errorf("%s, %s: %s", name, path, got)
			}
		}
	}
	go invoke(t, p, "meet")
	first := w.meet()
	if a := invoke(t, p, "ask "+api+"invocation/next"); string(a.Payload) != "403 Forbidden" {
		t.Errorf("another process of the function: %s", a.Payload)
	}
	first.conn.Write([]byte("x"))
}

func TestRealChildrenMayAsk(t *testing.T) {
	t.Parallel()
	p := runPool(t, Options{
		Command: []string{"/bin/sh", "-c", `(setsid "$SELF" & wait) & wait`},
		Env:     append(functionEnv("function", ""), "SELF="+os.Args[0]),
	})
	if a := invoke(t, p, "go on"); string(a.Payload) != "did go on" {
		t.Errorf("%+v", a)
	}
}

func TestRealUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root may change the user")
	}
	p := runPool(t, Options{
		Command: []string{"/bin/sh", "-c", `test "$(id -u):$(id -g):$HOME" = 54332:54333:/ && exec "$0"`, copySelf(t)},
		Dir:     "/", User: "54332:54333", Env: functionEnv("function", ""),
	})
	if a := invoke(t, p, "go on"); string(a.Payload) != "did go on" {
		t.Errorf("%+v: %s", a, a.Payload)
	}
}

func TestRealLimits(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: limits are only supported on Linux")
	}
	p := runPool(t, Options{
		Command: []string{"/bin/sh", "-c", `test "$(ulimit -n)" = 77 && exec "$0"`, os.Args[0]},
		Limits:  map[string]string{"nofile": "77"}, Env: functionEnv("function", ""),
	})
	if a := invoke(t, p, "go on"); string(a.Payload) != "did go on" {
		t.Errorf("%+v: %s", a, a.Payload)
	}
}

func TestUnknownUsersAndLimitsAreRefused(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"user nobody-here not found": {User: "nobody-here"},
		"unknown limit":              {Limits: map[string]string{"patience": "1"}},
	} {
		o.Command = []string{"/bin/sh"}
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func copySelf(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "function")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "function")
	copied := exec.Command("cp", os.Args[0], file) // so that no other new process inherits the open file
	if err := errors.Join(os.Chmod(dir, 0o755), copied.Run()); err != nil {
		t.Fatal(err)
	}
	return file
}
