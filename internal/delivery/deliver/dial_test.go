package deliver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

func TestDialFailures(t *testing.T) {
	t.Parallel()
	connect := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for _, test := range []struct {
		err    error
		reason string
	}{
		{connect(syscall.ECONNREFUSED), "connection refused"},
		{connect(syscall.ETIMEDOUT), "no connection within 5s"},
		{context.DeadlineExceeded, "no connection within 5s"},
		{connect(syscall.EHOSTUNREACH), "host not reachable"},
		{connect(syscall.ENETUNREACH), "host not reachable"},
		{connect(syscall.ENOENT), "socket does not exist"},
		{connect(syscall.EACCES), "no permission to connect"},
		{connect(syscall.EADDRNOTAVAIL), "no local ports left"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)},
			"too many open files (raise ulimit -n)"},
		{&net.DNSError{UnwrapErr: syscall.ENFILE}, "too many open files (raise ulimit -n)"},
		{&net.DNSError{IsNotFound: true}, "host name not found"},
		{&net.DNSError{IsTimeout: true}, "no connection within 5s"},
		{refuseAddress(netip.MustParseAddr("169.254.169.254")), "address refused (link-local or metadata)"},
		{errors.New("something else"), "no connection"},
	} {
		h := newHTTP(t, func(o *Options) {
			o.dial = func(context.Context, string, string) (net.Conn, error) { return nil, test.err }
		})
		r := deliver(h, message())
		want(t, r, queue.Unreached, 0, test.reason)
		if !errors.Is(r.Err, test.err) {
			t.Errorf("%s: the cause is %v", test.reason, r.Err)
		}
		probed := strings.Replace(test.reason, "5s", "4s", 1)
		if err := h.Probe(t.Context()); err == nil || err.Error() != probed || !errors.Is(err, test.err) {
			t.Errorf("%s: the probe says %v", test.reason, err)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	for target, reason := range map[string]string{
		"http://127.0.0.1:" + testpeer.FreePort(t):          "connection refused",
		"unix://" + filepath.Join(t.TempDir(), "none.sock"): "socket does not exist",
	} {
		h := newHTTP(t, func(o *Options) { o.Target = target })
		want(t, deliver(h, message()), queue.Unreached, 0, reason)
	}
}

func TestLocalhostIsDialledByNumber(t *testing.T) {
	t.Parallel()
	var dialled []string
	refused := fmt.Errorf("first: %w", syscall.ECONNREFUSED)
	h := newHTTP(t, func(o *Options) {
		o.Target = "http://LocalHost:8080"
		o.dial = func(_ context.Context, network, address string) (net.Conn, error) {
			dialled = append(dialled, network+" "+address)
			if len(dialled) == 1 {
				return nil, refused
			}
			return nil, syscall.EADDRNOTAVAIL // as on a machine without IPv6
		}
	})
	r := deliver(h, message())
	want(t, r, queue.Unreached, 0, "connection refused")
	if expected := []string{"tcp 127.0.0.1:8080", "tcp [::1]:8080"}; !slices.Equal(dialled, expected) ||
		!errors.Is(r.Err, refused) {
		t.Errorf("dialled %q, failed of %v", dialled, r.Err)
	}
}

func TestSecondAddressIsTried(t *testing.T) {
	t.Parallel()
	a := &app{script: alwaysAnswer(ok200)}
	t.Cleanup(a.running.Wait)
	h := newHTTP(t, func(o *Options) {
		o.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "127.") {
				return nil, syscall.ECONNREFUSED
			}
			return a.pipe(ctx, network, address)
		}
	})
	want(t, deliver(h, message()), queue.Done, 200, "")
}

func TestRefuseAddress(t *testing.T) {
	t.Parallel()
	for address, refused := range map[string]bool{
		"169.254.169.254": true, "169.254.1.1": true, "::ffff:169.254.169.254": true, "fe80::1": true, "fe80::1%eth0": true,
		"fd00:ec2::254": true, "224.0.0.1": true, "ff02::1": true, "0.0.0.0": true, "::": true,
		"127.0.0.1": false, "::1": false, "10.0.0.1": false, "192.168.1.1": false, "fd00:ec2::253": false, "8.8.8.8": false,
	} {
		if err := refuseAddress(netip.MustParseAddr(address)); (err != nil) != refused {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestRefusedAtConnect(t *testing.T) {
	t.Parallel()
	h := newHTTP(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// Even if the address were not refused, TCP would send nothing to it: it is a multicast address.
	_, err := h.transport.dialer.open(ctx, "tcp", "224.0.0.1:80")
	if !errors.Is(err, errRefusedAddress) {
		t.Errorf("dialled: %v", err)
	}
	if err := refuseAtConnect(ctx, "unix", "/run/app.sock", nil); err != nil {
		t.Errorf("a socket: %v", err)
	}
}
