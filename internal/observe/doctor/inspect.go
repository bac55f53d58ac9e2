package doctor

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const syncSamples = 5

// InspectDisk examines the disk of the data directory, which need not exist, by writing a small temporary file.
func InspectDisk(path string) Disk {
	d := Disk{Path: path}
	folder, err := nearestFolder(path)
	if err != nil {
		d.Problem = err.Error()
		return d
	}

	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err == nil {
		d.Free = int64(s.Bavail) * int64(s.Bsize)
		d.Total = int64(s.Blocks) * int64(s.Bsize)
		d.Kind = networkFileSystem(&s)
	}

	d.Sync, err = syncTime(folder)
	if err != nil {
		d.Problem = err.Error()
	}
	return d
}

func nearestFolder(path string) (string, error) {
	info, err := os.Stat(path)
	parent := filepath.Dir(path)
	switch {
	case err == nil && info.IsDir():
		return path, nil
	case err == nil:
		return "", &fs.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
	case !errors.Is(err, fs.ErrNotExist) || parent == path:
		return "", err
	}
	return nearestFolder(parent)
}

func syncTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, ".tendril-doctor-")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return 0, err
	}

	var times []time.Duration
	for range syncSamples {
		began := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(began))
	}

	slices.Sort(times)
	return times[len(times)/2], nil
}

// Answer describes a server by its response.
type Answer struct {
	// Ahead is as in [Clock], and valid if Dated is set.
	Ahead  time.Duration
	Dated  bool
	Server string
}

// InspectServer sends a HEAD request to a URL, or to "unix:" and a path. It accepts any status and modifies transport.
func InspectServer(ctx context.Context, target string, transport *http.Transport) (Answer, error) {
	transport.DisableKeepAlives = true
	if path, found := strings.CutPrefix(target, "unix:"); found {
		target = "http://localhost/"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(path, "//"))
		}
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodHead, target, nil)
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("User-Agent", "tendril doctor")
	client := &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		var asked *url.Error
		if errors.As(err, &asked) {
			err = asked.Err
		}
		return Answer{}, err
	}
	defer resp.Body.Close()

	a := Answer{Server: resp.Header.Get("Server")}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil && resp.Header.Get("Age") == "" {
		middle := began.Add(time.Since(began) / 2)
		// Date is truncated to seconds, so it is half a second behind on average.
		a.Ahead, a.Dated = at.Add(500*time.Millisecond).Sub(middle), true
	}
	return a, nil
}

const nginxTimeout = 60 * time.Second

// FindProxy returns the nginx in front of target, if the Server header names it. Its timeout is the shortest in files
// matching the patterns, by default 60 s.
func FindProxy(target, server string, patterns ...string) (p Proxy, found bool) {
	if !strings.HasPrefix(server, "nginx") {
		return p, false
	}
	p = Proxy{Target: target, Name: "nginx", Timeout: nginxTimeout}
	for _, pattern := range patterns {
		files, _ := filepath.Glob(pattern)
		for _, path := range files {
			timeout, line := readTimeout(path)
			if line > 0 && (p.Where == "" || timeout < p.Timeout) {
				p.Timeout, p.Where = timeout, path+":"+strconv.Itoa(line)
			}
		}
	}
	return p, true
}

func readTimeout(path string) (shortest time.Duration, line int) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0
	}
	defer f.Close()

	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) != 2 || fields[0] != "proxy_read_timeout" {
			continue
		}

		value := strings.TrimSuffix(fields[1], ";")
		if strings.Trim(value, "0123456789") == "" {
			value += "s"
		}
		if d, err := time.ParseDuration(value); err == nil && (line == 0 || d < shortest) {
			shortest, line = d, n
		}
	}
	return shortest, line
}

// FindZones finds the machine's time zone database.
func FindZones() Zones {
	z := Zones{Checked: true}
	for _, dir := range []string{os.Getenv("ZONEINFO"), "/usr/share/zoneinfo", "/usr/lib/zoneinfo",
		"/usr/share/lib/zoneinfo", "/etc/zoneinfo"} {
		if _, err := os.Stat(dir); dir != "" && err == nil {
			z.System = dir
			break
		}
	}
	return z
}

// ProbeAddress connects to a host and port, or to "unix:" and a path.
func ProbeAddress(ctx context.Context, address string) error {
	network := "tcp"
	if path, found := strings.CutPrefix(address, "unix:"); found {
		network, address = "unix", path
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		var failed *net.OpError
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return err
	}
	return conn.Close()
}

const firstUser, endOfUsers = 1000, 60000

// FindUsers returns the users in a passwd file who have an ID from 1000 to 59999 and a login shell, except self.
func FindUsers(passwd string, self int) (names []string) {
	f, err := os.Open(passwd)
	if err != nil {
		return nil
	}
	defer f.Close()

	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) != 7 {
			continue
		}
		id, err := strconv.Atoi(fields[2])
		isPerson := err == nil && id >= firstUser && id < endOfUsers
		shell := filepath.Base(fields[6])
		if isPerson && id != self && shell != "nologin" && shell != "false" {
			names = append(names, fields[0])
		}
	}
	return names
}
