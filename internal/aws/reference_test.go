package aws

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseReference(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in     string
		want   Reference
		remote bool
	}{
		{"jobs", Reference{Name: "jobs"}, false},
		{"jobs.fifo", Reference{Name: "jobs.fifo"}, false},
		{"arn:aws:sqs:eu-west-1:123456789012:jobs.fifo",
			Reference{Name: "jobs.fifo", Region: "eu-west-1", Account: "123456789012"}, true},
		{"arn:aws-cn:sqs:cn-north-1:1:jobs", Reference{Name: "jobs", Region: "cn-north-1", Account: "1"}, true},
		{"https://sqs.us-east-1.amazonaws.com/1/jobs", Reference{Name: "jobs", Region: "us-east-1", Account: "1"}, true},
		{"https://sqs-fips.us-gov-west-1.amazonaws.com/1/jobs",
			Reference{Name: "jobs", Region: "us-gov-west-1", Account: "1"}, true},
		{"https://sqs.cn-north-1.amazonaws.com.cn/1/jobs", Reference{Name: "jobs", Region: "cn-north-1", Account: "1"}, true},
		{"https://sqs.eu-central-1.api.aws/1/jobs", Reference{Name: "jobs", Region: "eu-central-1", Account: "1"}, true},
		{"https://eu-west-3.queue.amazonaws.com/1/jobs", Reference{Name: "jobs", Region: "eu-west-3", Account: "1"}, true},
		{"https://queue.amazonaws.com/1/jobs", Reference{Name: "jobs", Region: "us-east-1", Account: "1"}, true},
		{"https://vpce-0a-1.sqs.eu-west-1.vpce.amazonaws.com/1/jobs",
			Reference{Name: "jobs", Region: "eu-west-1", Account: "1",
				origin: "https://vpce-0a-1.sqs.eu-west-1.vpce.amazonaws.com"}, true},
		{"http://127.0.0.1:9324/000000000000/jobs",
			Reference{Name: "jobs", Account: "000000000000", origin: "http://127.0.0.1:9324"}, true},
		{"http://localhost:9324/jobs", Reference{Name: "jobs", origin: "http://localhost:9324"}, true},
		{"http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000000/jobs",
			Reference{Name: "jobs", Region: "us-east-1", Account: "000000000000",
				origin: "http://sqs.us-east-1.localhost.localstack.cloud:4566"}, true},
	}
	for _, test := range tests {
		if strings.Contains(test.in, "://") {
			test.want.URL = test.in
		}
		got, err := ParseReference(test.in)
		if err != nil {
			t.Errorf("%s: %v", test.in, err)
			continue
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Reference{})); diff != "" {
			t.Errorf("%s:\n%s", test.in, diff)
		}
		if got.Remote() != test.remote {
			t.Errorf("%s: remote %v", test.in, got.Remote())
		}
	}
}

func TestInvalidReferences(t *testing.T) {
	t.Parallel()
	for in, says := range map[string]string{
		"":                                 "use a name of 1 to 80 letters",
		"a b":                              "letters, digits",
		"über":                             "letters, digits",
		".fifo":                            "letters, digits",
		"jobs.fifo.fifo":                   "letters, digits",
		strings.Repeat("a", 81):            "1 to 80",
		"arn:aws:sqs:eu-west-1:1":          "arn:aws:sqs:us-east-1:123456789012:jobs",
		"arn:aws:sns:eu-west-1:1:jobs":     `its service is "sns"`,
		"arn:aws:sqs::1:jobs":              "the region or the account is empty",
		"arn:aws:sqs:eu-west-1:1:a/b":      "is not a queue name",
		"arn:aws:sqs:evil.example/:1:jobs": "is not a region",
		"arn:aws:sqs:evil.example#:1:jobs": "is not a region",
		"arn:aws:sqs:a@evil:1:jobs":        "is not a region",
		"ftp://host/1/jobs":                `scheme is "ftp"`,
		"https:///1/jobs":                  "no host",
		"https://key:secret@host/1/jobs":   "user name",
		"https://host/1/jobs?Action=Purge": "query",
		"https://host/":                    "is not a queue name",
		"https://host/1/%zz":               "is not a queue URL",
	} {
		_, err := ParseReference(in)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want an error that says %q", in, err, says)
		}
	}
}

func FuzzParseReference(f *testing.F) {
	f.Add("jobs.fifo")
	f.Add("https://sqs.us-east-1.amazonaws.com/1/jobs")
	f.Add("arn:aws:sqs:eu-west-1:1:jobs")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseReference(s)
		if err == nil && !validName(r.Name) {
			t.Errorf("%q: the name %q cannot be", s, r.Name)
		}
	})
}
