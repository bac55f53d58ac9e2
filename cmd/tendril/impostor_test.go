package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"tendril/api"
	"tendril/internal/cli/base"
)

type impostor struct {
	net.Listener
	mu  sync.Mutex
	got bytes.Buffer
}

func newImpostor(t *testing.T, answer string) *impostor {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i := &impostor{Listener: l}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go i.serve(conn, answer)
		}
	}()
	return i
}

func (i *impostor) serve(conn net.Conn, answer string) {
	defer conn.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := conn.Read(buffer)
		i.mu.Lock()
		i.got.Write(buffer[:n])
		i.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

func (i *impostor) received() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.got.String()
}

// The impostor answers like an older version, while the environment runs or after it was killed and its process ID
// reused.
func TestVerbsSendNothingToAnImpostor(t *testing.T) {
	t.Parallel()
	const token, body = "a-token-that-nobody-else-may-get", "card-4111"
	const found = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
	verbs := [][]string{
		{"send", body}, {"peek"}, {"queues", "list"}, {"queues", "create", body}, {"queues", "purge", "jobs", "--yes"},
		{"queues", "pause", "--reason", body}, {"queues", "resume"}, {"dead", "list"}, {"dead", "redrive", "--all"},
		{"dead", "export"}, {"status"}, {"health"}, {"drain"}, {"reload"}, {"open", "--print"}, {"deploy", "."},
		{"rollback"}, {"versions"}, {"tasks", "run", body}, {"config", "set", "http-connections=5"}, {"events"},
		{"tokens", "list"}, {"ps"}, {"doctor"}, {"logs"},
	}
	for name, c := range map[string]struct {
		killed bool
		answer string
		code   int
		want   string
	}{
		"running, an older version": {false, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", base.ExitUnreachable,
			"restart the environment (process "},
		"running, another program": {false, found, base.ExitUnreachable, "does not prove that it is environment"},
		"killed":                   {true, found, base.ExitNotFound, "no environment is running on "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := newImpostor(t, c.answer)
			s := &stage{t: t, dir: t.TempDir()}
			release, err := api.Claim(s.dir)
			instance := api.Instance{PID: os.Getpid(), Version: "0.9", Environment: "photos",
				Console: there.Addr().String(), Endpoint: "http://127.0.0.1:1",
				Queues: []api.InstanceQueue{{Name: "jobs", DeadLetterQueue: "jobs-dead", Embedded: true}}}
			if err := errors.Join(err, instance.Write(s.dir), api.WriteToken(s.dir, token)); err != nil {
				t.Fatal(err)
			}
			if c.killed {
				err = release()
			} else {
				t.Cleanup(func() { _ = release() })
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, args := range verbs {
				before := len(there.received())
				_, talk, code := s.tendril("", args...)
				if said := there.received()[before:]; strings.Contains(said, token) || strings.Contains(said, body) {
					t.Errorf("%v: the impostor got %q", args, said)
				}
				if slices.Contains([]string{"ps", "doctor", "tokens"}, args[0]) {
					continue // these commands print more
				}
				if code != c.code || !strings.Contains(talk, c.want) {
					t.Errorf("%v: exit %d, want %d, said %s", args, code, c.code, talk)
				}
			}
		})
	}
}
