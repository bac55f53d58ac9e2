package access

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Caller is who makes a request.
type Caller struct {
	// Name is that of the key pair; "" for the owner, who may do everything that no policy denies.
	Name string
	// TLS tells that the request came encrypted.
	TLS bool
	// Address is where the request came from; the zero Addr for a unix socket.
	Address  netip.Addr
	sendOnly bool
	queues   []string // none means every queue
}

// OwnerOf returns the owner as the caller of a request that is not signed.
func OwnerOf(r *http.Request) *Caller { return &Caller{TLS: r.TLS != nil, Address: address(r)} }

// address returns where a request came from.
func address(r *http.Request) netip.Addr {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	return from.Addr().Unmap().WithZone("")
}

// sendActions are what a pair that may only send needs.
var sendActions = []string{"SendMessage", "SendMessageBatch", "GetQueueUrl", "GetQueueAttributes"}

// Allows reports whether a caller may do an action ("SendMessage") with the queue of an ARN, whose policy is p. The
// ARN is "" for what is about no queue: listing queues, and the registry, for which a caller needs every right. What
// a policy denies is denied to the owner too.
func (c *Caller) Allows(action, arn string, p *Policy) bool {
	_, rest, _ := strings.Cut(strings.TrimPrefix(arn, "arn:aws:sqs:"), ":") // REGION:ACCOUNT:NAME
	account, name, _ := strings.Cut(rest, ":")
	principal := "arn:aws:iam::" + account + ":root"
	if c.Name != "" {
		principal = "arn:aws:iam::" + account + ":user/" + c.Name
	}
	switch p.decide(request{principal, account, action, arn, c.TLS, c.Address}) {
	case denied:
		return false
	case allowed:
		return true
	}
	if len(c.queues) > 0 && !slices.Contains(c.queues, name) {
		return false
	}
	return !c.sendOnly || arn != "" && slices.Contains(sendActions, action)
}
