package aws

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
)

// Reference is a queue's name, URL or ARN.
type Reference struct {
	Name            string
	URL             string
	Region, Account string

	// origin is the scheme and host of a URL outside AWS's public endpoints.
	origin string
}

// Remote reports whether the reference is a URL or an ARN. A name may also mean an embedded queue.
func (r Reference) Remote() bool { return r.URL != "" || r.Region != "" }

// ParseReference parses a queue's name, URL or ARN.
func ParseReference(s string) (Reference, error) {
	switch {
	case strings.HasPrefix(s, "arn:"):
		return parseARN(s)
	case strings.Contains(s, "://"):
		return parseURL(s)
	case !validName(s):
		return Reference{}, fmt.Errorf("invalid queue %q: use a name of 1 to 80 letters, digits, - and _ (with .fifo "+
			"for a FIFO queue), a URL like https://sqs.us-east-1.amazonaws.com/123456789012/jobs or an ARN like "+
			"arn:aws:sqs:us-east-1:123456789012:jobs", s)
	}
	return Reference{Name: s}, nil
}

func parseARN(s string) (Reference, error) {
	a, err := arn.Parse(s)
	switch {
	case err != nil:
	case a.Service != "sqs":
		err = fmt.Errorf("its service is %q, not sqs", a.Service)
	case a.Region == "" || a.AccountID == "":
		err = fmt.Errorf("the region or the account is empty")
	case !hostLabel.MatchString(a.Region):
		err = fmt.Errorf("%q is not a region", a.Region)
	case !validName(a.Resource):
		err = fmt.Errorf("%q is not a queue name", a.Resource)
	}
	if err != nil {
		return Reference{}, fmt.Errorf(
			"invalid queue ARN %q: %w; use an ARN such as arn:aws:sqs:us-east-1:123456789012:jobs", s, err)
	}

	return Reference{Name: a.Resource, Region: a.Region, Account: a.AccountID}, nil
}

func parseURL(s string) (Reference, error) {
	u, err := url.Parse(s)
	if err != nil {
		return Reference{}, fmt.Errorf("%q is not a queue URL: %w", s, err)
	}

	segments := strings.Split(strings.Trim(u.Path, "/"), "/")
	name := segments[len(segments)-1]
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		err = fmt.Errorf("its scheme is %q, not https or http", u.Scheme)
	case u.Host == "":
		err = fmt.Errorf("it has no host")
	case u.User != nil:
		err = fmt.Errorf("it contains a user name; credentials come from the environment or a profile")
	case u.RawQuery != "" || u.Fragment != "":
		err = fmt.Errorf("it has a query or a fragment")
	case !validName(name):
		err = fmt.Errorf("its last part, %q, is not a queue name", name)
	}

	if err != nil {
		return Reference{}, fmt.Errorf("invalid queue URL %q: %w; use a URL such as "+
			"https://sqs.us-east-1.amazonaws.com/123456789012/jobs", s, err)
	}

	r := Reference{Name: name, URL: s}
	if len(segments) > 1 {
		r.Account = segments[len(segments)-2]
	}

	var public bool
	r.Region, public = regionOfHost(u.Hostname())
	if !public {
		r.origin = u.Scheme + "://" + u.Host
	}
	return r, nil
}

// regionOfHost sets public if the SDK has endpoint rules for the host, such as for dual stack, FIPS and partitions.
func regionOfHost(host string) (region string, public bool) {
	labels := strings.Split(host, ".")
	public = !strings.Contains(host, ".vpce.") && (strings.HasSuffix(host, ".amazonaws.com") ||
		strings.HasSuffix(host, ".amazonaws.com.cn") || strings.HasSuffix(host, ".api.aws"))

	switch {
	case host == "queue.amazonaws.com":
		return "us-east-1", true
	case len(labels) > 1 && labels[1] == "queue" && regionLabel.MatchString(labels[0]):
		return labels[0], public
	}

	for i := range len(labels) - 1 {
		if (labels[i] == "sqs" || labels[i] == "sqs-fips") && regionLabel.MatchString(labels[i+1]) {
			return labels[i+1], public
		}
	}
	return "", public
}

var (
	// A region may become part of a host name, so an invalid one could direct calls elsewhere.
	hostLabel   = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	regionLabel = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-\d+$`)
	queueNames  = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.fifo)?$`)
)

func validName(name string) bool { return len(name) <= 80 && queueNames.MatchString(name) }
