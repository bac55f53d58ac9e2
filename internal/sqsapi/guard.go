package sqsapi

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"tendril/queue"
)

// guard keeps web pages away from the endpoint. A page that the user has
// open can make the browser call any port of this machine, and by pointing
// its own name at 127.0.0.1 it can even read the answers. The first shows in
// headers that only browsers send, the second in the Host header.
type guard struct {
	signed bool // every request is signed, and its host with it: no page can make one
}

// check refuses a request that a web page may have caused.
func (g guard) check(r *http.Request) error {
	if !g.signed && !overSocket(r) && !isLoopback(r.Host) {
		return queue.Errorf(queue.CodeAccessDenied,
			"This endpoint does not answer to the host %s. Call it as localhost or by a loopback address such as 127.0.0.1. "+
				"To serve other host names, start it with --credentials, so that requests are signed, or use a unix socket.",
			quote(r.Host))
	}
	if ofNodeFetch(r.Header) {
		return nil
	}

	header := browserHeader(r.Header)
	if header == "" && r.Header.Get("X-Amz-Target") == "" && r.Header["Accept-Language"] != nil {
		// A page can cause a request of the Query protocol without asking first, and some browsers send
		// none of the other headers to a host that is not loopback. This one they all send.
		header = "Accept-Language"
	}

	if header != "" {
		return queue.Errorf(queue.CodeAccessDenied,
			"The request carries the header %s, which browsers add, and requests from web pages are refused. Call the "+
				"endpoint from a program that does not send it.", quote(header))
	}
	return nil
}

// isLoopback reports whether a Host header is localhost or a loopback address. The port may be
// any: a forwarded port differs from ours, and the name alone tells a page
// that has pointed its own name here.
func isLoopback(hostport string) bool {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = hostport, ""
		if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
			host = host[1 : len(host)-1]
		}
	}
	if strings.Trim(port, "0123456789") != "" {
		return false
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback() {
		return true
	}
	return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}

// ofNodeFetch reports whether a request is one of Node's fetch, which sends Sec-Fetch-Mode: cors and no other header of
// a browser's. A browser that sends Sec-Fetch-Mode sends Sec-Fetch-Site with it, and no script can set or remove
// either: https://www.w3.org/TR/fetch-metadata/.
func ofNodeFetch(header http.Header) bool {
	for name := range header {
		if name == "Origin" || name == "Referer" || strings.HasPrefix(name, "Sec-") && name != "Sec-Fetch-Mode" {
			return false
		}
	}
	language := header["Accept-Language"]
	return slices.Equal(header["Sec-Fetch-Mode"], []string{"cors"}) &&
		(language == nil || slices.Equal(language, []string{"*"}))
}

// browserHeader returns a header that only browsers send, "" when there is
// none. An empty value counts too. Headers that begin with Sec- cannot be
// set by scripts, so the whole family is a browser's.
func browserHeader(header http.Header) string {
	for name := range header {
		if name == "Origin" || name == "Referer" || strings.HasPrefix(name, "Sec-") {
			return name
		}
	}
	return ""
}
