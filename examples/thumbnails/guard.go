package main

import (
	"net"
	"net/http"
	"net/netip"
)

// guarded rejects requests of other sites' pages. The port is local, but so is the browser: a page could POST here
// across sites, or through a DNS name that resolves to 127.0.0.1.
func guarded(next http.Handler) http.Handler {
	return ownHost(http.NewCrossOriginProtection().Handler(next))
}

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
