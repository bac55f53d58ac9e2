package access

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"tendril/queue"
)

// Caller is the sender of a request.
type Caller struct {
	// Name is the name of the caller's key pair, or "" for the owner, who may do everything that no policy denies.
	Name string
	TLS  bool
	// Address is the zero Addr for a Unix socket.
	Address  netip.Addr
	sendOnly bool
	queues   []string // empty means all queues
}

// OwnerOf returns the caller of an unsigned request: the owner of the queues.
func OwnerOf(r *http.Request) *Caller { return &Caller{TLS: r.TLS != nil, Address: address(r)} }

func address(r *http.Request) netip.Addr {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	return from.Addr().Unmap().WithZone("")
}

var sendActions = []string{"SendMessage", "SendMessageBatch", "GetQueueUrl", "GetQueueAttributes"}

// repairActions are always permitted to callers with all permissions, because a policy that denies too much could
// otherwise never be replaced.
var repairActions = []string{"AddPermission", "DeleteQueue", "GetQueueAttributes", "RemovePermission",
	"SetQueueAttributes"}

// Authorize returns an AccessDenied error unless the caller may perform action on the queue with the given ARN and
// policy. arn is "" for actions without a queue, which require all permissions. The error mentions the policy only to
// callers who would be allowed without it.
func (c *Caller) Authorize(action, arn string, p *Policy) error {
	_, rest, _ := strings.Cut(strings.TrimPrefix(arn, "arn:aws:sqs:"), ":") // removes REGION from REGION:ACCOUNT:NAME
	account, name, _ := strings.Cut(rest, ":")
	principal := "arn:aws:iam::" + account + ":root"
	if c.Name != "" {
		principal = "arn:aws:iam::" + account + ":user/" + c.Name
	}

	if c.hasAllPermissions() && slices.Contains(repairActions, action) {
		return nil
	}

	granted := c.isGranted(action, name)
	decision, by := p.decide(request{principal, account, action, arn, c.TLS, c.Address})
	switch {
	case decision == denied && granted:
		return denial(action, name, by.Condition.all)
	case decision == allowed, decision == silent && granted:
		return nil
	}
	return queue.Errorf(queue.CodeAccessDenied, "The caller is not allowed to call %s.", action)
}

func (c *Caller) hasAllPermissions() bool { return !c.sendOnly && len(c.queues) == 0 }

func (c *Caller) isGranted(action, name string) bool {
	switch {
	case c.hasAllPermissions():
		return true
	case name == "":
		return false
	case len(c.queues) > 0 && !slices.Contains(c.queues, name):
		return false
	}
	return !c.sendOnly || slices.Contains(sendActions, action)
}

func denial(action, name string, held []condition) error {
	cause := " to this caller"
	advice := "Use other credentials"
	for _, c := range held {
		switch c.key {
		case secureTransport:
			cause = ", because the request is not encrypted"
			advice = "Call the endpoint over https"
		case sourceIP:
			cause = ", because of the address it comes from"
			advice = "Call it from another address"
		}
	}

	return queue.Errorf(queue.CodeAccessDenied, "The policy of queue %s denies %s%s. %s, or change the policy. The "+
		"owner and key pairs with all permissions can always call SetQueueAttributes.", name, action, cause, advice)
}
