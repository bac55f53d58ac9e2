package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// deriveMetrics sends metrics to Amazon only for those who are there already
// and gave a name: nobody gets a bill by surprise.
func (l deriver) deriveMetrics() {
	if l.cfg.CloudWatch != Auto {
		return
	}
	switch {
	case !l.watched():
		l.cfg.CloudWatch = Off
		l.settle("cloudwatch", "no queue and no function is Amazon's")
	case l.origin("name").Layer <= FromBundle:
		l.cfg.CloudWatch = Off
		l.settle("cloudwatch", "no name was set")
	default:
		l.cfg.CloudWatch = On
		l.settle("cloudwatch", "a name was set")
	}
}

// watched reports whether there is a queue or a function whose figures belong to
// where CloudWatch is spoken: Amazon's own go to Amazon, and those of a server
// that takes Amazon's place to one that takes CloudWatch's.
func (l deriver) watched() bool {
	elsewhere := l.vars["AWS_ENDPOINT_URL_CLOUDWATCH"] != "" && !amazonURL(l.endpoint("CLOUDWATCH"))
	sqs, lambda := amazonURL(cmp.Or(l.cfg.EndpointURL, l.endpoint("SQS"))), amazonURL(l.endpoint("LAMBDA"))
	return slices.ContainsFunc(l.cfg.Queues, func(q QueueSettings) bool {
		return q.Backend == BackendSQS && (elsewhere || sqs && amazonURL(q.URL)) || q.Function != "" && (elsewhere || lambda)
	})
}

// endpoint is where the variables of every AWS SDK say that a service is; "" for
// Amazon's own place.
func (l *loader) endpoint(service string) string {
	if strings.EqualFold(l.vars["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"], "true") {
		return ""
	}
	return cmp.Or(l.vars["AWS_ENDPOINT_URL_"+service], l.vars["AWS_ENDPOINT_URL"])
}

// amazonURL reports whether what lies there is Amazon's: "" leaves the choice to
// the AWS SDK, an ARN names no host.
func amazonURL(address string) bool {
	if address == "" || strings.HasPrefix(address, "arn:") {
		return true
	}
	u, err := url.Parse(address)
	return err == nil && amazonHost(strings.ToLower(u.Hostname()))
}

// amazonHost reports whether a name is in one of Amazon's own domains.
func amazonHost(name string) bool {
	return slices.ContainsFunc([]string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws"}, func(domain string) bool {
		return strings.HasSuffix(name, domain)
	})
}
