package doctor

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestInspectDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := InspectDisk(filepath.Join(dir, "not", "there"))
	if d.Problem != "" || d.Free <= 0 || d.Total < d.Free || d.Sync <= 0 {
		t.Errorf("a folder that is not there yet: %+v", d)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		if d := InspectDisk(path); d.Problem == "" {
			t.Errorf("%s can be written: %+v", path, d)
		}
	}
}

func TestInspectServer(t *testing.T) {
	t.Parallel()
	handle := func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			t.Errorf("asked by %s", r.Method)
		}
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		w.Header().Set("Server", "nginx/1.22.1")
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}
	server := httptest.NewServer(http.HandlerFunc(handle))
	defer server.Close()
	socket := filepath.Join(t.TempDir(), "app.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	local := &http.Server{Handler: http.HandlerFunc(handle)}
	go local.Serve(l)
	defer local.Close()
	for _, target := range []string{server.URL, "unix:" + socket} {
		a, err := InspectServer(t.Context(), target, &http.Transport{})
		if err != nil || !a.Dated || (a.Ahead+time.Hour).Abs() > 5*time.Second || a.Server != "nginx/1.22.1" {
			t.Errorf("%s: %+v, %v", target, a, err)
		}
	}
	server.Close()
	_, err = InspectServer(t.Context(), server.URL, &http.Transport{})
	if err == nil || strings.Contains(err.Error(), "http://") {
		t.Errorf("a server that is gone: %v", err)
	}
}

func TestFindProxy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := filepath.Join(dir, "*.conf")
	if _, found := FindProxy("t", "gunicorn", all); found {
		t.Error("gunicorn is taken for a proxy")
	}
	if p, found := FindProxy("t", "nginx", all); !found || p.Timeout != time.Minute || p.Where != "" {
		t.Errorf("without a file: %+v", p)
	}
	write("a.conf", "http {\n  proxy_read_timeout 600s; # for reports\n}\n")
	if p, _ := FindProxy("t", "nginx", all); p.Timeout != 10*time.Minute || !strings.HasSuffix(p.Where, "a.conf:2") {
		t.Errorf("one file: %+v", p)
	}
	write("b.conf", "# proxy_read_timeout 1;\nproxy_read_timeout 90;\nproxy_read_timeout 5m;\n")
	if p, _ := FindProxy("t", "nginx", all); p.Timeout != 90*time.Second || !strings.HasSuffix(p.Where, "b.conf:2") {
		t.Errorf("two files: %+v", p)
	}
}

func TestFindUsersReturnsOtherPeopleWhoCanLogIn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "passwd")
	text := "root:x:0:0:root:/root:/bin/bash\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n" +
		"ann:x:1000:1000::/home/ann:/bin/bash\nbob:x:1001:1001::/home/bob:/bin/zsh\nbackup:x:1002:1002::/:/bin/false\n" +
		"nobody:x:65534:65534::/:/bin/sh\nbroken\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := FindUsers(file, 1000); !slices.Equal(got, []string{"bob"}) {
		t.Errorf("found %q, want bob", got)
	}
	if got := FindUsers(file+".none", 0); got != nil {
		t.Errorf("found %q in no file", got)
	}
}

func TestProbeAddressSaysWhyNothingAnswers(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ProbeAddress(t.Context(), l.Addr().String()); err != nil {
		t.Error(err)
	}
	l.Close()
	for _, address := range []string{l.Addr().String(), "unix:" + t.TempDir() + "/none"} {
		err := ProbeAddress(t.Context(), address)
		if err == nil || strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
