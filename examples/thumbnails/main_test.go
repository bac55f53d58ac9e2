package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

func TestStopFinishesTheJobInFlight(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "source"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writePNG(filepath.Join(dir, "source", "001-dawn.png"), draw(1, 96, 64)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	port := testpeer.FreePort(t)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, dir, port, "") }()
	conn := dial(t, port, ended)
	defer conn.Close()
	const body = `{"image":"001-dawn.png","width":24}`
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n",
		len(body))
	answer := bufio.NewReader(conn)
	if line, err := answer.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("the job is not in hand: %q, %v", line, err)
	}
	if _, err := answer.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	stop()
	for refused := false; !refused; {
		other, err := net.Dial("tcp4", "127.0.0.1:"+port)
		if refused = err != nil; !refused {
			other.Close()
		}
	}
	for range 1000 {
		runtime.Gosched()
	}
	select {
	case err := <-ended:
		t.Fatalf("ended with the job in hand: %v", err)
	default:
	}
	fmt.Fprint(conn, body)
	resp, err := http.ReadResponse(answer, nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the job's answer: %v, %v", resp, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestStartThatCannotWorkIsAnError(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, taken, _ := net.SplitHostPort(l.Addr().String())
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"taken port": run(t.Context(), t.TempDir(), taken, ""),
		"a file in the place of the folder": run(t.Context(), file, "0", "")} {
		if err == nil {
			t.Errorf("%s: it started", what)
		}
	}
}

func dial(t *testing.T, port string, ended <-chan error) net.Conn {
	t.Helper()
	for {
		conn, err := net.DialTimeout("tcp4", "127.0.0.1:"+port, time.Minute)
		if err == nil {
			return conn
		}
		select {
		case err := <-ended:
			t.Skipf("SKIPPED: port %s cannot be used: %v", port, err)
		default:
			runtime.Gosched()
		}
	}
}
