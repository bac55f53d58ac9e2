package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// refuseClearQueue refuses a bundle's queue URL by which calls would leave this machine
// unencrypted: they carry messages and, with a role's credentials, the session token.
// Whoever runs the bundle can still choose that.
func (l deriver) refuseClearQueue() {
	for i := range l.cfg.Queues {
		q, from := &l.cfg.Queues[i], l.cfg.QueueOrigin(i, "url")
		if from.Layer == Default || i == 0 && l.origin("queue-url").Layer != Default {
			from = l.origin("queue-url")
		}
		if q.Backend != BackendSQS || from.Layer != FromBundle || !leavesInClear(q.URL) {
			continue
		}
		l.refuse(Problem{
			Where: from.Where, Option: "queue-url",
			Text: fmt.Sprintf("the bundle's queue URL %s is not encrypted: messages and credentials' session tokens would be "+
				"readable on the way", shown(q.URL)),
			Hint: "write https://, or, where the network to that host is yours, give the URL yourself: --queue-url=" + q.URL,
		})
	}
}

// warnClear tells of calls to SQS that leave this machine unencrypted because somebody
// who runs it said so.
func (l warner) warnClear() {
	for i := range l.cfg.Queues {
		q := &l.cfg.Queues[i]
		if q.Backend != BackendSQS {
			continue
		}
		name, address := "endpoint-url", cmp.Or(l.cfg.EndpointURL, l.endpoint("SQS"))
		if address == "" {
			name, address = "queue-url", q.URL
		}
		if leavesInClear(address) {
			l.about(name, fmt.Sprintf("calls to %s are not encrypted: messages and credentials' session tokens are readable "+
				"on the way", shown(address)),
				"use https, unless the network to that host is yours")
			return
		}
	}
}

// leavesInClear reports whether calls to a URL leave this machine unencrypted. Amazon's
// own hosts are called with TLS whatever the URL says.
func leavesInClear(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return !isLoopback(net.JoinHostPort(host, "0")) && (!amazonHost(host) || strings.Contains(host, ".vpce."))
}
