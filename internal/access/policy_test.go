package access

import (
	"net/netip"
	"strings"
	"testing"
)

func TestAllows(t *testing.T) {
	t.Parallel()
	const jobs, mail = "arn:aws:sqs:us-east-1:000000000000:jobs", "arn:aws:sqs:us-east-1:000000000000:mail"
	owner := &Caller{}
	all := &Caller{Name: "ops"}
	sender := &Caller{Name: "web", sendOnly: true}
	confined := &Caller{Name: "job", queues: []string{"jobs"}}
	encrypted := &Caller{Name: "ops", TLS: true}
	near := &Caller{Name: "web", sendOnly: true, Address: netip.MustParseAddr("10.2.3.4")}
	statement := func(text string) string {
		return `{"Version":"2012-10-17","Statement":[{` + text + `}]}`
	}
	const allowWeb = `"Effect":"Allow","Principal":{"AWS":["arn:aws:iam::000000000000:user/web"]},"Action":"SQS:ReceiveMessage"`
	for name, c := range map[string]struct {
		caller      *Caller
		action, arn string
		policy      string
		want        bool
	}{
		"the owner may delete":               {owner, "DeleteQueue", jobs, "", true},
		"the owner may lead":                 {owner, "SwapLease", "", "", true},
		"every right":                        {all, "DeleteQueue", jobs, "", true},
		"every right, no queue":              {all, "ListQueues", "", "", true},
		"a sender sends":                     {sender, "SendMessage", jobs, "", true},
		"a sender sends batches":             {sender, "SendMessageBatch", jobs, "", true},
		"a sender does not receive":          {sender, "ReceiveMessage", jobs, "", false},
		"a sender lists no queues":           {sender, "ListQueues", "", "", false},
		"a sender keeps out of the registry": {sender, "SwapLease", "", "", false},
		"confined to this queue":             {confined, "ReceiveMessage", jobs, "", true},
		"confined to another":                {confined, "ReceiveMessage", mail, "", false},
		"confined, no queue":                 {confined, "ListQueues", "", "", false},
		"a policy allows more":               {sender, "ReceiveMessage", jobs, statement(allowWeb), true},
		"to this user only": {&Caller{Name: "x", sendOnly: true}, "ReceiveMessage", jobs,
			statement(allowWeb), false},
		"and this action only": {sender, "DeleteMessage", jobs, statement(allowWeb), false},
		"for this resource only": {sender, "ReceiveMessage", mail,
			statement(allowWeb + `,"Resource":"` + jobs + `"`), false},
		"a resource with a wildcard": {sender, "ReceiveMessage", mail,
			statement(allowWeb + `,"Resource":"arn:aws:sqs:*:*:ma?l"`), true},
		"under a condition not evaluated": {sender, "ReceiveMessage", jobs,
			statement(allowWeb + `,"Condition":{"ArnEquals":{"aws:SourceArn":"x"}}`), false},
		"over TLS only, in clear text": {sender, "ReceiveMessage", jobs,
			statement(allowWeb + `,"Condition":{"Bool":{"aws:SecureTransport":true}}`), false},
		"from this network": {near, "ReceiveMessage", jobs,
			statement(allowWeb + `,"Condition":{"IpAddress":{"aws:SourceIp":["192.0.2.1","10.0.0.0/8"]}}`), true},
		"from another network": {near, "ReceiveMessage", jobs,
			statement(allowWeb + `,"Condition":{"IpAddress":{"aws:SourceIp":"10.1.0.0/16"}}`), false},
		"from this network, in clear text": {near, "ReceiveMessage", jobs, statement(allowWeb +
			`,"Condition":{"IpAddress":{"aws:SourceIp":"10.0.0.0/8"},"Bool":{"aws:SecureTransport":"true"}}`), false},
		"from a socket": {sender, "ReceiveMessage", jobs,
			statement(allowWeb + `,"Condition":{"IpAddress":{"aws:SourceIp":"0.0.0.0/0"}}`), false},
		"a range that is none": {near, "ReceiveMessage", jobs,
			statement(allowWeb + `,"Condition":{"NotIpAddress":{"aws:SourceIp":"10.0.0.0/99"}}`), false},
		"denied to other networks": {near, "SendMessage", jobs, statement(`"Effect":"Deny","Principal":"*","Action":"*",` +
			`"Condition":{"NotIpAddress":{"aws:SourceIp":["192.0.2.0/24","2001:db8::/32"]}}`), false},
		"denied to other networks, and of this one": {near, "SendMessage", jobs, statement(`"Effect":"Deny","Principal":"*",` +
			`"Action":"*","Condition":{"NotIpAddress":{"aws:SourceIp":["192.0.2.0/24","10.0.0.0/8"]}}`), true},
		"denied to other networks, from a socket": {sender, "SendMessage", jobs, statement(`"Effect":"Deny",` +
			`"Principal":"*","Action":"*","Condition":{"NotIpAddress":{"aws:SourceIp":"0.0.0.0/0"}}`), false},
		"the owner repairs a policy": {owner, "SetQueueAttributes", jobs,
			statement(`"Effect":"Deny","Principal":"*","Action":"*"`), true},
		"a pair with every right repairs a policy": {all, "RemovePermission", jobs,
			statement(`"Effect":"Deny","Principal":"*","Action":"*"`), true},
		"a confined pair does not": {confined, "SetQueueAttributes", jobs,
			statement(`"Effect":"Deny","Principal":"*","Action":"*"`), false},
		"a sender does not": {sender, "SetQueueAttributes", jobs, "", false},
		"a policy denies the owner": {owner, "PurgeQueue", jobs,
			statement(`"Effect":"Deny","Principal":"*","Action":"sqs:purge*"`), false},
		"and nothing else": {owner, "SendMessage", jobs,
			statement(`"Effect":"Deny","Principal":"*","Action":"sqs:purge*"`), true},
		"denied to an account": {all, "PurgeQueue", jobs,
			statement(`"Effect":"Deny","Principal":{"AWS":"000000000000"},"Action":"*"`), false},
		"allowed to an account": {sender, "PurgeQueue", jobs,
			statement(`"Effect":"Allow","Principal":{"AWS":"000000000000"},"Action":"*"`), false},
		"denied to another account": {all, "PurgeQueue", jobs,
			statement(`"Effect":"Deny","Principal":{"AWS":"111111111111"},"Action":"*"`), true},
		"allowed to a service": {sender, "PurgeQueue", jobs,
			statement(`"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"*"`), false},
		"clear text denied": {all, "SendMessage", jobs,
			statement(`"Effect":"Deny","Principal":"*","Action":"*","Condition":{"Bool":{"aws:SecureTransport":"false"}}`), false},
		"clear text denied, but encrypted": {encrypted, "SendMessage", jobs,
			statement(`"Effect":"Deny","Principal":"*","Action":"*","Condition":{"Bool":{"aws:SecureTransport":"false"}}`), true},
		"a right for messages is for batches": {sender, "DeleteMessageBatch", jobs,
			statement(`"Effect":"Allow","Principal":"*","Action":["sqs:DeleteMessage"]`), true},
		"a batch denied by its name": {sender, "SendMessageBatch", jobs,
			statement(`"Effect":"Deny","Principal":"*","Action":"sqs:SendMessageBatch"`), false},
		"a single message while batches are denied": {sender, "SendMessage", jobs,
			statement(`"Effect":"Deny","Principal":"*","Action":"sqs:SendMessageBatch"`), true},
		"a batch allowed by its name": {sender, "DeleteMessageBatch", jobs,
			statement(`"Effect":"Allow","Principal":"*","Action":"sqs:DeleteMessageBatch"`), false},
		"a denial wins": {sender, "SendMessage", jobs, `{"Statement":[{"Effect":"Deny","Principal":"*","Action":"*"},` +
			`{"Effect":"Allow","Principal":"*","Action":"*"}]}`, false},
		"one statement without a list": {sender, "ReceiveMessage", jobs, `{"Statement":{` + allowWeb + `}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := ParsePolicy(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.caller.Authorize(c.action, c.arn, p); (err == nil) != c.want {
				t.Errorf("allowed %t, want %t: %v", err == nil, c.want, err)
			}
		})
	}
}

func TestPoliciesThatWouldSeemToProtectAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`nonsense`:                            "not a JSON object",
		`[]`:                                  "not a JSON object",
		`{"Statement":[{"Effect":"Forbid"}]}`: "invalid Effect",
		`{"Statement":[{"Effect":"Deny","Principal":"*"}]}`:                                                                  "needs an AWS Principal",
		`{"Statement":[{"Effect":"Deny","Principal":{"Service":"x"},"Action":"*"}]}`:                                         "needs an AWS Principal",
		`{"Statement":[{"Effect":"Deny","NotPrincipal":{"AWS":"1"},"Action":"*"}]}`:                                          "NotPrincipal",
		`{"Statement":[{"Effect":"Deny","Principal":"*","NotAction":"sqs:SendMessage"}]}`:                                    "NotAction",
		`{"Statement":[{"Effect":"Deny","Principal":"*","Action":"*","Condition":{"StringLike":{"aws:UserAgent":"x"}}}]}`:    "with the conditions",
		`{"Statement":[{"Effect":"Deny","Principal":"*","Action":"*","Condition":{"IpAddress":{"aws:SourceIp":"10.0.0"}}}]}`: "with the conditions",
		`{"Statement":[{"Effect":"Deny","Principal":"*","Action":"*","Condition":{"ArnLike":{"aws:SourceArn":"*"}}}]}`:       "with the conditions",
		`{"Statement":[{"Effect":"Allow","Principal":"web","Action":"*"}]}`:                                                  "Principal",
	} {
		if _, err := ParsePolicy(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if p, err := ParsePolicy(""); p != nil || err != nil {
		t.Errorf("no policy: %v, %v", p, err)
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for pattern, c := range map[string]struct{ yes, no string }{
		"*":       {"anything", "\x00never"},
		"a*c":     {"abbc", "abcd"},
		"a?c":     {"abc", "ac"},
		"*x*y*":   {"1x2y3", "1y2x3"},
		"sqs:*":   {"sqs:sendmessage", "sns:publish"},
		"a**b":    {"ab", "ba"},
		"literal": {"literal", "litera"},
	} {
		if !matchesWildcard(pattern, c.yes) || pattern != "*" && matchesWildcard(pattern, c.no) {
			t.Errorf("pattern %q", pattern)
		}
	}
}

// A Deny of everything must apply beside any other statement.
func FuzzParsePolicy(f *testing.F) {
	f.Add(`{"Effect":"Allow","Principal":{"AWS":["1"]},"Action":["sqs:*"],"Resource":"*","Condition":{"Bool":{"a":["b"]}}}`)
	f.Add(`{"Effect":"Deny","Principal":"*","Action":"sqs:Send*"}`)
	f.Add(`{"Sid":"x","Effect":"Allow","NotAction":{},"Principal":{"Service":"s3.amazonaws.com"}}`)
	f.Fuzz(func(t *testing.T, statement string) {
		const arn = "arn:aws:sqs:us-east-1:000000000000:jobs"
		if p, err := ParsePolicy(`{"Statement":[` + statement + `]}`); err == nil {
			_ = (&Caller{Name: "web"}).Authorize("SendMessage", arn, p)
		}
		const deny = `{"Effect":"Deny","Principal":"*","Action":"*"}`
		if p, err := ParsePolicy(`{"Statement":[` + statement + `,` + deny + `]}`); err == nil &&
			len(p.statements) > 0 && (&Caller{}).Authorize("SendMessage", arn, p) == nil {
			t.Errorf("%s hides the denial behind it", statement)
		}
	})
}
