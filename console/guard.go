package console

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// secure sets what a browser must not do with an answer. There are no
// Access-Control headers, ever.
func secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}

// admit refuses requests that were not meant for this listener, or that a page
// of another site made a browser send. A page whose name was pointed at this
// machine passes the cross-origin check, so the Host is asked first.
func (s *Server) admit(r *http.Request) *Error {
	if !allowedHost(r.Host, s.opts.Hosts) && !isOwnAddress(r) {
		return refuse(http.StatusForbidden, "this listener does not answer for the host that the request names",
			"address it as 127.0.0.1, [::1] or localhost, or start tendril with --console-hosts NAME")
	}
	if err := s.crossOrigin.Check(r); err != nil {
		return refuse(http.StatusForbidden, "a page of another site may not do this",
			"send the request from a program, or from a page of this console")
	}
	return nil
}

// isOwnAddress reports whether the request names the very IP address that it came
// in at, as a probe of a cluster does. A page whose name was pointed here has a
// name in its place.
func isOwnAddress(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && ip.Unmap() == local.AddrPort().Addr().Unmap()
}

// allowedHost reports whether a Host header names this listener: localhost, a
// loopback address, or one of the names given; ports do not matter.
func allowedHost(hostport string, allowed []string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || slices.Contains(allowed, host)
	}
	same := func(name string) bool { return strings.EqualFold(name, host) }
	return host != "" && (same("localhost") || slices.ContainsFunc(allowed, same))
}

// checkAct refuses an act that a form of a web page could have sent.
func checkAct(r *http.Request) *Error {
	if r.Method == http.MethodDelete && r.ContentLength == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "an act takes JSON only",
			"send the header Content-Type: application/json, and {} when there is nothing to say")
	}
	return nil
}
