package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Policy is a queue's access policy, in the format of "Grammar of the IAM JSON policy language" in the IAM User
// Guide. A nil Policy has no statements.
type Policy struct{ statements []statement }

type statement struct {
	Sid, Effect                          string
	Principal                            principal
	Action, Resource                     texts
	NotPrincipal, NotAction, NotResource json.RawMessage
	Condition                            conditions
}

type texts []string

func (t *texts) UnmarshalJSON(data []byte) error {
	var list []string
	if json.Unmarshal(data, &list) == nil {
		*t = list
		return nil
	}

	var one string
	if json.Unmarshal(data, &one) != nil {
		one = string(data) // a JSON boolean
		if one != "true" && one != "false" {
			return errors.New("not a string or list of strings")
		}
	}
	*t = texts{one}
	return nil
}

var errPrincipal = errors.New(`the Principal is neither "*" nor an object such as {"AWS": "*"}`)

// principal contains only AWS principals. Others, such as services, never call this endpoint.
type principal struct{ aws texts }

// UnmarshalJSON accepts "*" or an object. It ignores keys other than "AWS".
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

// ParsePolicy parses a policy. It returns nil for "". An Allow statement with an unsupported condition, or with
// NotPrincipal, NotAction or NotResource, never applies. A Deny statement with one is an error, because it would only
// seem to protect the queue.
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
	if len(list) > 0 && list[0] == '{' { // a single statement may be written without a list
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
		return errors.New("this queue does not evaluate a Deny with NotPrincipal, NotAction or NotResource: name the " +
			"principals, actions and resources")
	case len(s.Principal.aws) == 0 || len(s.Action) == 0:
		return errors.New("a Deny needs an AWS Principal and an Action")
	case s.Condition.unsupported:
		return errors.New("this queue evaluates a Deny only with the conditions Bool aws:SecureTransport and " +
			"IpAddress or NotIpAddress aws:SourceIp, with valid ranges")
	}
	return nil
}

type conditions struct {
	all         []condition
	unsupported bool // or has invalid values
}

// UnmarshalJSON accepts unsupported conditions.
func (c *conditions) UnmarshalJSON(data []byte) error {
	var operators map[string]map[string]texts
	if err := json.Unmarshal(data, &operators); err != nil {
		return err
	}
	for _, operator := range slices.Sorted(maps.Keys(operators)) {
		for key, values := range operators[operator] {
			one, supported := parseCondition(strings.ToLower(operator), strings.ToLower(key), values)
			if !supported {
				c.unsupported = true
				return nil
			}
			c.all = append(c.all, one)
		}
	}
	return nil
}

func (c *conditions) hold(r request) bool {
	fails := func(one condition) bool { return !one.holds(r) }
	return !c.unsupported && !slices.ContainsFunc(c.all, fails)
}

const (
	secureTransport = "aws:securetransport"
	sourceIP        = "aws:sourceip"
)

type condition struct {
	key   string
	holds func(request) bool
}

// A request over a Unix socket has no IP address, so NotIpAddress holds for it and IpAddress does not, as on AWS if the
// key is missing.
func parseCondition(operator, key string, values texts) (c condition, supported bool) {
	switch {
	case operator == "bool" && key == secureTransport && len(values) == 1:
		return condition{key, func(r request) bool { return (values[0] == "true") == r.tls }}, true
	case (operator == "ipaddress" || operator == "notipaddress") && key == sourceIP && len(values) > 0:
		var ranges []netip.Prefix
		for _, text := range values {
			prefix, err := parseRange(text)
			if err != nil {
				return condition{}, false
			}
			ranges = append(ranges, prefix)
		}
		return condition{key, func(r request) bool {
			within := slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(r.address) })
			return within == (operator == "ipaddress")
		}}, true
	}
	return condition{}, false
}

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

type request struct {
	principal, account, action, arn string
	tls                             bool
	address                         netip.Addr // zero if unknown
}

// A Deny overrides every Allow. by is the statement that denies the request, or nil.
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

func (s *statement) applies(r request) bool {
	if s.NotPrincipal != nil || s.NotAction != nil || s.NotResource != nil {
		return false
	}
	if !s.Condition.hold(r) {
		return false
	}
	if !slices.ContainsFunc(s.Principal.aws, func(p string) bool { return s.matchesPrincipal(p, r) }) {
		return false
	}

	// As on Amazon SQS, an action includes its batch form. A Deny may also name only the batch form.
	if !s.names(strings.TrimSuffix(r.action, "Batch")) && (s.Effect == "Allow" || !s.names(r.action)) {
		return false
	}
	return len(s.Resource) == 0 || slices.ContainsFunc(s.Resource, func(p string) bool { return matchesWildcard(p, r.arn) })
}

func (s *statement) names(action string) bool {
	action = strings.ToLower("sqs:" + action)
	return slices.ContainsFunc(s.Action, func(p string) bool { return matchesWildcard(strings.ToLower(p), action) })
}

// As on AWS, an account matches its root user and, in a Deny statement, all of its users.
func (s *statement) matchesPrincipal(principal string, r request) bool {
	root := "arn:aws:iam::" + r.account + ":root"
	switch principal {
	case "*", r.principal:
		return true
	case r.account, root:
		return s.Effect == "Deny" || r.principal == root
	}
	return false
}

func matchesWildcard(pattern, text string) bool {
	star := -1 // index of the last "*" seen, which matches text up to from
	from := 0
	p := 0
	t := 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star = p
			from = t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			from++
			p = star + 1
			t = from
		default:
			return false
		}
	}

	return strings.Trim(pattern[p:], "*") == ""
}
