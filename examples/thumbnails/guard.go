package main

import (
	"net"
	"net/http"
	"net/netip"
)

// guarded keeps pages of other sites out. The port is on this machine only, but so is
// the browser: a page may POST here across sites, or under a name of its own that it
// lets lead to 127.0.0.1. Worker daemons send neither Origin nor such a name.
func guarded(next http.Handler) http.Handler {
	return ownHost(http.NewCrossOriginProtection().Handler(next))
}

// ownHost refuses requests for another host than this one.
func ownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			http.Error(w, "this is not "+host+": ask for 127.0.0.1 or localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
