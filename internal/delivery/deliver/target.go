package deliver

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// maxSocketPath is the maximum length in bytes of a socket path that all systems support.
const maxSocketPath = 103

type target struct {
	network string   // "tcp" or "unix"
	dials   []string // addresses to try, in order
	host    string
	name    string // for TLS; "" without TLS
	path    string
}

func parseTarget(raw string) (*target, error) {
	for _, prefix := range []string{"unix:", "http+unix:"} {
		if rest, ok := strings.CutPrefix(raw, prefix); ok {
			return socketTarget(raw, rest)
		}
	}

	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("invalid target %q: use a URL such as http://127.0.0.1:8080/ or unix:///run/app.sock", hideUser(raw))
	}

	switch {
	case u.User != nil:
		return nil, fmt.Errorf("target %q has a user name: remove it, only the message is sent to the app",
			hideUser(raw))
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("target %q has a query or a fragment: put the query into the HTTP path", raw)
	}

	return hostTarget(raw, u)
}

func hideUser(raw string) string {
	scheme, rest, found := strings.Cut(raw, "://")
	if at := strings.LastIndexByte(rest, '@'); found && at >= 0 {
		return scheme + "://***" + rest[at:]
	}
	return raw
}

func socketTarget(raw, rest string) (*target, error) {
	socket, path, err := splitSocketPath(strings.TrimPrefix(rest, "//"))
	if err != nil {
		return nil, fmt.Errorf("target %q has an invalid percent-escape: write the socket's path as unix:///run/app.sock", raw)
	}
	if !strings.HasPrefix(socket, "/") || hasControl(socket) {
		return nil, fmt.Errorf("target %q has no socket path: write the absolute path, such as unix:///run/app.sock", raw)
	}
	if len(socket) > maxSocketPath {
		return nil, fmt.Errorf("target %q: a socket's path may have at most %d bytes", raw, maxSocketPath)
	}
	return &target{network: "unix", dials: []string{socket}, host: "localhost", path: path}, nil
}

// splitSocketPath accepts an absolute path, or a percent-encoded path, optionally followed by the request path.
func splitSocketPath(text string) (socket, path string, err error) {
	if strings.HasPrefix(text, "/") {
		return text, "", nil
	}
	escaped, after, found := strings.Cut(text, "/")
	if found {
		path = "/" + after
	}
	socket, err = url.PathUnescape(escaped)
	return socket, path, err
}

func hostTarget(raw string, u *url.URL) (*target, error) {
	host := u.Hostname()
	t := &target{network: "tcp", path: u.EscapedPath()}
	standardPort := "80"
	if u.Scheme == "https" {
		t.name, standardPort = host, "443"
	}
	port := cmp.Or(u.Port(), standardPort)
	address, _ := netip.ParseAddr(host) // invalid for a name
	if err := checkHost(host, address, port); err != nil {
		return nil, fmt.Errorf("target %q: %w", raw, err)
	}

	t.dials = []string{net.JoinHostPort(host, port)}
	t.host = strings.TrimSuffix(net.JoinHostPort(host, port), ":"+standardPort)
	isLocalName := strings.EqualFold(host, "localhost")
	if isLocalName {
		// localhost may reach different processes over IPv4 and IPv6; prefer IPv4.
		t.dials = []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}
	}
	if isLocalName || address.IsLoopback() {
		t.host = localHost(port, standardPort)
	}
	return t, nil
}

func checkHost(host string, address netip.Addr, port string) error {
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return errors.New("a port is a number from 1 to 65535")
	}

	switch {
	case !address.IsValid() && !isHostName(host):
		return errors.New("the host may contain letters, digits, dots, hyphens and underscores; write an international " +
			"name in its xn-- form")
	case !address.IsValid():
		return nil
	case address.IsUnspecified():
		return fmt.Errorf("%s is an address to listen on; write 127.0.0.1 to reach an app on this machine", host)
	}
	return refuseAddress(address)
}

// localHost returns a Host header that apps usually allow for local requests.
func localHost(port, standard string) string {
	if port == standard {
		return "localhost"
	}
	return "localhost:" + port
}

var errRefusedAddress = errors.New("link-local, multicast and cloud metadata addresses are never posted to")

// refuseAddress rejects addresses that may serve machine credentials (link-local, metadata), and multicast and
// unspecified ones.
func refuseAddress(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	metadata := netip.AddrFrom16([16]byte{0xfd, 0x00, 0x0e, 0xc2, 14: 0x02, 15: 0x54})
	if a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || a == metadata {
		return fmt.Errorf("address %s refused: %w", a, errRefusedAddress)
	}
	return nil
}
