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

// OwnerOf returns the owner of the queues as the caller of an unsigned request.
func OwnerOf(r *http.Request) *Caller { return &Caller{TLS: r.TLS != nil, Address: address(r)} }

func address(r *http.Request) netip.Addr {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	return from.Addr().Unmap().WithZone("")
}

var sendActions = []string{"SendMessage", "SendMessageBatch", "GetQueueUrl", "GetQueueAttributes"}

// repairActions are always permitted to callers with all permissions, as to the root user of an AWS account. Otherwise,
// a policy that denies too much could never be replaced.
var repairActions = []string{"AddPermission", "DeleteQueue", "GetQueueAttributes", "RemovePermission",
	"SetQueueAttributes"}

// Authorize returns an AccessDenied error unless the caller may perform action, such as "SendMessage", on the queue
// with the given ARN and policy. arn is "" for actions without a queue, which require all permissions. The error
// mentions the policy only to callers who would be allowed without it.
func (c *Caller) Authorize(action, arn string, p *Policy) error {
	_, rest, _ := strings.Cut(strings.TrimPrefix(arn, "arn:aws:sqs:"), ":") // removes REGION from REGION:ACCOUNT:NAME
	account, name, _ := strings.Cut(rest, ":")
	principal := "arn:aws:iam::" + account + ":root"
	if c.Name != "" {
		principal = "arn:aws:iam::" + account + ":user/" + c.Name
	}

	everything := !c.sendOnly && len(c.queues) == 0
	granted := everything || (len(c.queues) == 0 || slices.Contains(c.queues, name)) &&
		(!c.sendOnly || arn != "" && slices.Contains(sendActions, action))
	decision, by := p.decide(request{principal, account, action, arn, c.TLS, c.Address})
	switch {
	case everything && slices.Contains(repairActions, action):
		return nil
	case decision == denied && granted:
		return denial(action, name, by.Condition)
	case decision == allowed || decision == silent && granted:
		return nil
	}
	return queue.Errorf(queue.CodeAccessDenied, "The caller is not allowed to call %s here.", action)
}

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
