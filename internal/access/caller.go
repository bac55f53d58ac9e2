package access

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"tendril/queue"
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

// repairActions are open to a caller with every right whatever a policy says, as to the root of an account on Amazon: a
// policy that denies too much can be replaced by them only.
var repairActions = []string{"AddPermission", "DeleteQueue", "GetQueueAttributes", "RemovePermission",
	"SetQueueAttributes"}

// Authorize returns nil if a caller may do an action ("SendMessage") with the queue of an ARN, whose policy is p, and an
// AccessDenied error otherwise. The ARN is "" for what is about no queue: listing queues, and the registry, for which a
// caller needs every right. A policy can deny anything, to the owner too, except the actions that repair it. The error
// names the policy only to callers who would have had the right without it.
func (c *Caller) Authorize(action, arn string, p *Policy) error {
	_, rest, _ := strings.Cut(strings.TrimPrefix(arn, "arn:aws:sqs:"), ":") // REGION:ACCOUNT:NAME
	account, name, _ := strings.Cut(rest, ":")
	principal := "arn:aws:iam::" + account + ":root"
	if c.Name != "" {
		principal = "arn:aws:iam::" + account + ":user/" + c.Name
	}

	everything := !c.sendOnly && len(c.queues) == 0
	granted := everything || (len(c.queues) == 0 || slices.Contains(c.queues, name)) &&
		(!c.sendOnly || arn != "" && slices.Contains(sendActions, action))
	said, by := p.decide(request{principal, account, action, arn, c.TLS, c.Address})
	switch {
	case everything && slices.Contains(repairActions, action):
		return nil
	case said == denied && granted:
		return denial(action, name, by.Condition)
	case said == allowed || said == silent && granted:
		return nil
	}
	return queue.Errorf(queue.CodeAccessDenied, "The caller is not allowed to do %s here.", action)
}

// denial is the error of an action that a statement of a queue's policy denies under a condition.
func denial(action, name string, condition map[string]map[string]texts) error {
	why := ""
	for _, keys := range condition {
		for key := range keys {
			switch strings.ToLower(key) {
			case secureTransport:
				why = ", because the request is not encrypted. Call the endpoint over https"
			case sourceIP:
				why = ", because of the address it comes from. Call it from another address"
			}
		}
	}

	if why == "" {
		why = " to this caller. Use other credentials"
	}

	return queue.Errorf(queue.CodeAccessDenied, "The policy of the queue %s denies %s%s, or change the policy with "+
		"SetQueueAttributes, which stays open to callers with every right.", name, action, why)
}
