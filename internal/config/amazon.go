package config

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strings"
)

// deriveMetrics turns CloudWatch on only if a queue or function is on AWS and a name was set, to avoid unexpected
// costs.
func deriveMetrics(l *loader) {
	if l.cfg.CloudWatch != auto {
		return
	}

	switch {
	case !sendsMetricsByDefault(l):
		l.cfg.CloudWatch = Off
		l.recordDerived("cloudwatch", "no queue or function is on AWS itself")
	case l.origin("name").Layer <= FromBundle:
		l.cfg.CloudWatch = Off
		l.recordDerived("cloudwatch", "no name was set")
	default:
		l.cfg.CloudWatch = On
		l.recordDerived("cloudwatch", "a name was set")
	}
}

func sendsMetricsByDefault(l *loader) bool {
	customCloudWatch := l.vars["AWS_ENDPOINT_URL_CLOUDWATCH"] != "" && !amazonURL(l.endpoint("CLOUDWATCH"))
	if customCloudWatch {
		return l.s.any(func(q *QueueSettings) bool { return q.Backend == BackendSQS || q.Function != "" })
	}

	sqs := amazonURL(cmp.Or(l.cfg.EndpointURL, l.endpoint("SQS")))
	lambda := amazonURL(l.endpoint("LAMBDA"))
	return l.s.any(func(q *QueueSettings) bool {
		return sqs && q.Backend == BackendSQS && amazonURL(q.URL) || lambda && q.Function != ""
	})
}

// amazonURL is true for "" and ARNs, for which the AWS SDK chooses the host.
func amazonURL(address string) bool {
	if address == "" || strings.HasPrefix(address, "arn:") {
		return true
	}
	u, err := url.Parse(address)
	return err == nil && amazonHost(strings.ToLower(u.Hostname()))
}

// OtherServer returns the host of a queue's URL, or "" if it is on AWS.
func OtherServer(queueURL string) string {
	if u, err := url.Parse(queueURL); err == nil && !amazonURL(queueURL) {
		return u.Host
	}
	return ""
}

func amazonHost(name string) bool {
	return slices.ContainsFunc([]string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws"}, func(domain string) bool {
		return strings.HasSuffix(name, domain)
	})
}

// refuseUnencryptedQueue rejects unencrypted queue URLs in a bundle, which would reveal messages and session tokens.
func refuseUnencryptedQueue(l *loader) {
	for i := range l.cfg.Queues {
		q := &l.cfg.Queues[i]
		from := l.cfg.QueueOrigin(i, "url")
		if from.Layer == Default || i == 0 && l.isSet("queue-url") {
			from = l.origin("queue-url")
		}
		if q.Backend != BackendSQS || from.Layer != FromBundle || !isUnencrypted(q.URL) {
			continue
		}
		l.refuseAt(from.Where, "queue-url",
			"use https://, or, if you trust the network to that host, set the URL yourself: --queue-url="+q.URL,
			"the bundle's queue URL %s is not encrypted: messages and session tokens of credentials could be read in "+
				"transit",
			shown(q.URL))
	}
}

func warnUnencrypted(l *loader) {
	for i := range l.cfg.Queues {
		q := &l.cfg.Queues[i]
		if q.Backend != BackendSQS {
			continue
		}

		name, address := "endpoint-url", cmp.Or(l.cfg.EndpointURL, l.endpoint("SQS"))
		if address == "" {
			name, address = "queue-url", q.URL
		}

		if isUnencrypted(address) {
			l.warnAbout(name, "use https, unless you trust the network to that host",
				"calls to %s are not encrypted: messages and session tokens of credentials can be read in transit", shown(address))
			return
		}
	}
}

// isUnencrypted is false for Amazon's hosts other than VPC endpoints, because the AWS SDK always uses TLS for them.
func isUnencrypted(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return !isLoopback(net.JoinHostPort(host, "0")) && (!amazonHost(host) || strings.Contains(host, ".vpce."))
}
