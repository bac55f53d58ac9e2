package sqsapi

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"tendril/queue"
)

// rejectBrowser returns an error for calls from web pages, recognized by headers that only browsers add and, unless
// requests must be signed, by a Host header that is not local (DNS rebinding).
func (h *Handler) rejectBrowser(r *http.Request) error {
	if h.keys == nil && !overSocket(r) && !isLoopback(r.Host) {
		return queue.Errorf(queue.CodeAccessDenied,
			"This endpoint rejects requests for the host %s. Call it as localhost or by a loopback address such as "+
				"127.0.0.1. To serve other host names, start it with --credentials, so that requests are signed, or use a "+
				"unix socket.",
			quote(r.Host))
	}

	header := browserHeader(r.Header, "")
	if header == "" && r.Header.Get("X-Amz-Target") == "" && r.Header["Accept-Language"] != nil {
		// Pages can send Query requests without a preflight. Some browsers omit the other headers for hosts that are
		// not loopback, but all send Accept-Language.
		header = "Accept-Language"
	}

	if header == "" || ofNodeFetch(r.Header) {
		return nil
	}
	return queue.Errorf(queue.CodeAccessDenied,
		"The request carries the header %s, which browsers add, and requests from web pages are rejected. Call "+
			"the endpoint from a program that does not send it.", quote(header))
}

// isLoopback accepts any port, because ports may be forwarded.
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

// Node's fetch sends Sec-Fetch-Mode: cors, but none of the other headers of [browserHeader]. Browsers also add
// Sec-Fetch-Site, and scripts cannot set or remove either (https://www.w3.org/TR/fetch-metadata/).
func ofNodeFetch(header http.Header) bool {
	const mode = "Sec-Fetch-Mode"
	language := header["Accept-Language"]
	return browserHeader(header, mode) == "" && slices.Equal(header[mode], []string{"cors"}) &&
		(language == nil || slices.Equal(language, []string{"*"}))
}

// browserHeader returns a header that browsers add, other than allowed, or "".
func browserHeader(header http.Header, allowed string) string {
	for name := range header {
		if name != allowed && (name == "Origin" || name == "Referer" || strings.HasPrefix(name, "Sec-")) {
			return name
		}
	}
	return ""
}
