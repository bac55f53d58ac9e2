package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Policy is the policy of a queue, a JSON document as Amazon describes it in "Grammar of the IAM JSON policy
// language". The nil Policy says nothing.
type Policy struct{ statements []statement }

// statement is one statement. A list may be written as a single text.
type statement struct {
	Sid, Effect                          string
	Principal                            principal
	Action, Resource                     texts
	NotPrincipal, NotAction, NotResource json.RawMessage
	Condition                            map[string]map[string]texts
}

// texts is a list of texts, or one text.
type texts []string

// UnmarshalJSON reads a text, a truth value or a list of texts.
func (t *texts) UnmarshalJSON(data []byte) error {
	var list []string
	if json.Unmarshal(data, &list) == nil {
		*t = list
		return nil
	}
	var one string
	if json.Unmarshal(data, &one) != nil {
		one = string(data) // true and false
		if one != "true" && one != "false" {
			return errors.New("want a text or a list of texts")
		}
	}
	*t = texts{one}
	return nil
}

var errPrincipal = errors.New(`the Principal is neither "*" nor an object such as {"AWS": "*"}`)

// principal holds those of the kind AWS; others, such as services, call nothing here.
type principal struct{ aws texts }

// UnmarshalJSON reads "*" or {"AWS": ...}.
func (p *principal) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		if one != "*" {
			return errPrincipal
		}
		p.aws = texts{one}
		return nil
	}
	var kinds map[string]texts
	if err := json.Unmarshal(data, &kinds); err != nil {
		return errPrincipal
	}
	p.aws = kinds["AWS"]
	return nil
}

// ParsePolicy reads a policy; "" returns nil. A statement that allows something under a condition that is not evaluated
// here allows nothing. One that denies something so, or whose parts cannot be evaluated, is an error, because it
// would seem to protect the queue.
func ParsePolicy(text string) (*Policy, error) {
	if text == "" {
		return nil, nil
	}
	var document struct {
		Version, Id string
		Statement   json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		return nil, errors.New("the policy is not a JSON object with Version, Id and Statement")
	}

	var p Policy
	if document.Statement == nil {
		return &p, nil
	}

	list := document.Statement
	if len(list) > 0 && list[0] == '{' { // a single statement needs no list
		list = slices.Concat([]byte("["), list, []byte("]"))
	}

	if err := json.Unmarshal(list, &p.statements); err != nil {
		return nil, fmt.Errorf("the policy has an invalid Statement: %w", err)
	}

	for i := range p.statements {
		if err := p.statements[i].check(); err != nil {
			return nil, fmt.Errorf("statement %d of the policy: %w", i+1, err)
		}
	}
	return &p, nil
}

func (s *statement) check() error {
	switch {
	case s.Effect != "Allow" && s.Effect != "Deny":
		return fmt.Errorf("invalid Effect %q: use Allow or Deny", s.Effect)
	case s.Effect == "Allow":
		return nil
	case s.NotPrincipal != nil || s.NotAction != nil || s.NotResource != nil:
		return errors.New("a Deny with NotPrincipal, NotAction or NotResource is not evaluated by this queue: name the " +
			"principals, actions and resources")
	case len(s.Principal.aws) == 0 || len(s.Action) == 0:
		return errors.New("a Deny needs a Principal of the kind AWS and an Action")
	case !s.evaluable():
		return errors.New("a Deny under a condition other than Bool aws:SecureTransport and IpAddress or NotIpAddress " +
			"aws:SourceIp with valid ranges is not evaluated by this queue")
	}
	return nil
}

// evaluable reports whether every condition is one that can be decided here.
func (s *statement) evaluable() bool {
	_, evaluable := s.holds(request{})
	return evaluable
}

// holds reports whether all conditions hold for a request, and whether they can be decided here.
func (s *statement) holds(r request) (all, evaluable bool) {
	all = true
	for operator, keys := range s.Condition {
		for key, values := range keys {
			holds, evaluable := conditionHolds(strings.ToLower(operator), strings.ToLower(key), values, r)
			if !evaluable {
				return false, false
			}
			all = all && holds
		}
	}
	return all, true
}

// The condition keys that can be decided here, in lower case.
const (
	secureTransport = "aws:securetransport"
	sourceIP        = "aws:sourceip"
)

// conditionHolds decides one condition: whether the request came over TLS, or from which address. A request over a unix
// socket has no address: IpAddress does not hold for it, and NotIpAddress does, as for any key that is missing.
func conditionHolds(operator, key string, values texts, r request) (holds, evaluable bool) {
	switch {
	case operator == "bool" && key == secureTransport && len(values) == 1:
		return (values[0] == "true") == r.tls, true
	case (operator == "ipaddress" || operator == "notipaddress") && key == sourceIP && len(values) > 0:
		within := false
		for _, value := range values {
			prefix, err := parseRange(value)
			if err != nil {
				return false, false
			}
			within = within || prefix.Contains(r.address)
		}
		return within == (operator == "ipaddress"), true
	}
	return false, false
}

// parseRange reads a range of addresses, or one address.
func parseRange(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Prefix(addr.BitLen())
	}
	return netip.ParsePrefix(text)
}

type decision int

const (
	silent decision = iota
	allowed
	denied
)

// request is what a policy decides about.
type request struct {
	principal, account, action, arn string
	tls                             bool
	address                         netip.Addr // zero when there is none
}

// decide returns the policy's decision about a request, and the statement of a denial. A denial wins over every Allow.
func (p *Policy) decide(r request) (said decision, by *statement) {
	if p == nil {
		return silent, nil
	}
	for i := range p.statements {
		switch s := &p.statements[i]; {
		case !s.applies(r):
		case s.Effect == "Deny":
			return denied, s
		default:
			said = allowed
		}
	}
	return said, nil
}

// applies reports whether a statement is about a request.
func (s *statement) applies(r request) bool {
	if s.NotPrincipal != nil || s.NotAction != nil || s.NotResource != nil {
		return false
	}
	if holds, _ := s.holds(r); !holds {
		return false
	}
	// A right for single messages is one for batches too.
	action := "sqs:" + strings.TrimSuffix(r.action, "Batch")
	return slices.ContainsFunc(s.Principal.aws, func(p string) bool { return s.means(p, r) }) &&
		slices.ContainsFunc(s.Action, func(p string) bool { return match(strings.ToLower(p), strings.ToLower(action)) }) &&
		(len(s.Resource) == 0 || slices.ContainsFunc(s.Resource, func(p string) bool { return match(p, r.arn) }))
}

// means reports whether a principal is the caller. An account stands for its root and, where something is denied,
// for all of its users; to allow its users something is left to their own rights, as on Amazon.
func (s *statement) means(principal string, r request) bool {
	root := "arn:aws:iam::" + r.account + ":root"
	return principal == "*" || principal == r.principal ||
		(principal == r.account || principal == root) && (s.Effect == "Deny" || r.principal == root)
}

// match compares a text with a pattern in which "*" is any text and "?" one character.
func match(pattern, text string) bool {
	star, from := -1, 0
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
