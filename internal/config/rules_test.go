package config

import (
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 90)
	const alias = "arn:aws-cn:lambda:cn-north-1:123456789012:function:f:live"
	for name, c := range map[string]struct {
		rule func(string) (string, error)
		good map[string]string // input to normalized form
		bad  []string
	}{
		"environment name": {environmentName,
			map[string]string{"a": "a", "My_env-1": "My_env-1", long[:64]: long[:64]},
			[]string{"", "a b", "a.b", "ü", long[:65], "a/b"}},
		"queue name": {queueName,
			map[string]string{"jobs": "jobs", "jobs.fifo": "jobs.fifo", long[:80]: long[:80],
				long[:75] + ".fifo": long[:75] + ".fifo"},
			[]string{"", ".fifo", "a.b", "a.fifo.fifo", long[:81], long[:76] + ".fifo", "https://x/y", "arn:aws:sqs:r:1:q"}},
		"queue URL": {queueURL,
			map[string]string{
				"https://sqs.eu-west-1.amazonaws.com/123456789012/jobs":  "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs",
				"http://127.0.0.1:9324/000000000000/jobs.fifo":           "http://127.0.0.1:9324/000000000000/jobs.fifo",
				"arn:aws:sqs:eu-west-1:123456789012:jobs":                "arn:aws:sqs:eu-west-1:123456789012:jobs",
				"arn:aws-cn:sqs:cn-north-1:123456789012:jobs.fifo":       "arn:aws-cn:sqs:cn-north-1:123456789012:jobs.fifo",
				"https://vpce-1.sqs.us-east-1.vpce.amazonaws.com/1/jobs": "https://vpce-1.sqs.us-east-1.vpce.amazonaws.com/1/jobs",
			},
			[]string{"", "jobs", "https://sqs.eu-west-1.amazonaws.com", "https://sqs.eu-west-1.amazonaws.com/", "ftp://h/jobs",
				"https:///jobs",
				"https://h/1/a b", "https://h/jobs?x=1", "https://h/jobs#x", "https://u:p@h/jobs", "http://h:99999/jobs",
				"http://:80/jobs",
				"arn:aws:sns:eu-west-1:123456789012:jobs", "arn:aws:sqs:eu-west-1:123456789012", "arn:aws:sqs::1:jobs",
				"arn:aws:sqs:r:1:a b", "arn:a\x7fs:sqs:eu-central-1:123456789012:jobs", "arn::sqs:eu-west-1:123456789012:jobs"}},
		"endpoint": {endpointURL,
			map[string]string{"http://127.0.0.1:4566": "http://127.0.0.1:4566",
				"https://sqs.internal/": "https://sqs.internal/", "unix:///x": "unix:///x", "unix:x/y": "unix:x/y"},
			[]string{"", "127.0.0.1:4566", "localhost:4566", "http://", "http://h?x", "unix:", "unix://", "unix:/a\nb"}},
		"target": {targetURL,
			map[string]string{"http://127.0.0.1:8080": "http://127.0.0.1:8080", "https://app/": "https://app/",
				"http://[::1]:80/x":    "http://[::1]:80/x",
				"unix:///run/app.sock": "unix:///run/app.sock"},
			[]string{"", "app:8080", "http://0.0.0.0:80", "http://[::]:80", "http://169.254.169.254/", "http://[fe80::1]/",
				"http://224.0.0.1", "http://app?x=1", "http://app/?",
				"http://u@app", "http://app/#x", "http://app:0", "unix://app.sock", "unix:///a\nb", "http://a b"}},
		"path": {httpPath,
			map[string]string{"/": "/", "": "/", "jobs": "/jobs", "/a/b?x=1&y=..": "/a/b?x=1&y=..", "/a%20b": "/a%20b",
				"/100%25": "/100%25", "/a..b": "/a..b", "/a/": "/a/"},
			[]string{"//evil", "/a//b", "/..", "/a/../b", "/a/%2e%2E/b", "/a/%252e%252e/b", "/./a", "/..;x/a", "/a\\b",
				"/a%5cb", "/%2f", "/a b", "/ü", "/a#b",
				"/a%", "/a%zz", "/a\x00", "/a%00", "/" + strings.Repeat("a", 2048)}},
		"MIME type": {mimeType,
			map[string]string{"application/json": "application/json", "text/plain; charset=utf-8": "text/plain; charset=utf-8",
				"my-own": "my-own"},
			[]string{"", "text/plain\r\nX: y", "ünï", strings.Repeat("a", 256)}},
		"region": {region,
			map[string]string{"us-east-1": "us-east-1", "local": "local"},
			[]string{"", "US-EAST-1", "us east", "us_east", long}},
		"account": {accountID,
			map[string]string{"000000000000": "000000000000"},
			[]string{"", "0", "00000000000a", "0000000000000"}},
		"health check": {healthcheck,
			map[string]string{"TCP:80": "TCP:80", "tcp:5000": "TCP:5000", "HTTP:80": "HTTP:80/",
				"http:80/health?x": "HTTP:80/health?x"},
			[]string{"", "80", "TCP", "TCP:", "TCP:0", "TCP:+80", "TCP:65536", "TCP:80/x", "HTTPS:443/", "HTTP:80/../x", "HTTP:80//x",
				":80"}},
		"listen": {endpointAddresses,
			map[string]string{"127.0.0.1:9324": "127.0.0.1:9324", "localhost:0": "localhost:0", "[::1]:9324": "[::1]:9324",
				"127.9.9.9:1": "127.9.9.9:1", "9324": "127.0.0.1:9324", "0.0.0.0:9324": "0.0.0.0:9324",
				"unix:/run/x.sock": "unix:/run/x.sock", "9324, unix:/run/x.sock": "127.0.0.1:9324,unix:/run/x.sock",
				"unix:/run/x.sock,9324": "127.0.0.1:9324,unix:/run/x.sock"},
			[]string{"", ":9324", "example.com:80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:+80", "+8080", "-0", "-1", "70000",
				"127.0.0.1:http", "unix:", "9324,9325", "unix:/a,unix:/b", "9324,"}},
		"console": {consoleAddress,
			map[string]string{"off": "off", "false": "off", "no": "off", "0": "127.0.0.1:0", "127.0.0.1:9325": "127.0.0.1:9325"},
			[]string{"", "on", "true", ":9325", "+9325", "-0"}},
		"success codes": {normalizeCodes,
			map[string]string{"200": "200", "200,202-204": "200,202-204", "2xx": "200-299", "5XX,404": "404,500-599",
				"204, 200 ,202,203":   "200,202-204",
				"200-210,205-220,221": "200-221", "200-599": "200-599", "200,200": "200", "202 - 204": "202-204"},
			[]string{"", ",", "200,", "199", "600", "1xx", "6xx", "xx", "20x", "204-200", "200-", "-200", "+200", "200-+204", "2000", "ok",
				"200-202-204"}},
		"function": {functionName,
			map[string]string{"f": "f", "resize-images": "resize-images", "f:live": "f:live", "f:$LATEST": "f:$LATEST",
				"f:3": "f:3", "123456789012:function:f": "123456789012:function:f",
				"123456789012:function:f:live":                     "123456789012:function:f:live",
				"arn:aws:lambda:eu-west-1:123456789012:function:f": "arn:aws:lambda:eu-west-1:123456789012:function:f",
				alias: alias, long[:64]: long[:64]},
			[]string{"", "a b", "./f", "bin/f", "f:", ":live", "f:$OTHER", "f:a:b", "1:function:f", "123456789012:function:",
				"123456789012:layer:f", long[:65], "f:" + long + long,
				"arn", "arn:", "arn:aws:lambda", "arn:aws:sqs:eu-west-1:123456789012:jobs",
				"arn:aws:lambda:eu-west-1:123456789012:f", "arn:aws:lambda::123456789012:function:f",
				"arn:aws:lambda:r:123456789012:function:f:a:b"}},
		"command": {commandLine,
			map[string]string{"./f": "./f", " python3 f.py ": "python3 f.py",
				strings.Repeat("x", 4096): strings.Repeat("x", 4096)},
			[]string{"", "  ", "a\nb", "a\x00", strings.Repeat("x", 4097)}},
		"bucket": {bucketName,
			map[string]string{"abc": "abc", "my.payloads-1": "my.payloads-1", strings.Repeat("b", 63): strings.Repeat("b", 63)},
			[]string{"", "ab", "Abc", "my_bucket", "-abc", "abc.", "a..b", "s3://abc", "abc/x", strings.Repeat("b", 64)}},
		"archives": {archiveLocation,
			map[string]string{"/mnt/versions": "/mnt/versions", "s3://abc": "s3://abc", "s3://abc/": "s3://abc",
				"s3://abc/a/b/": "s3://abc/a/b", "s3://my.archives-1/orders": "s3://my.archives-1/orders"},
			[]string{"", "a\nb", "https://abc/x", "s3://", "s3://Abc/x", "s3:///x", "s3://abc/a//b", "s3://abc/../b", "s3://abc/a*",
				"s3://abc/a b", "s3://abc/" + strings.Repeat("p", 513)}},
		"user": {userName,
			map[string]string{"webapp": "webapp", "web.app-1": "web.app-1", "host$": "host$", "1000": "1000",
				"1000:1000": "1000:1000", "0:0": "0:0"},
			[]string{"", "a b", "-u", "web:app", "1000:", ":1000", "1000:app", "-1:5", "a/b", strings.Repeat("u", 33)}},
		"limit": {processLimit,
			map[string]string{"nofile=1024": "nofile=1024", "as=1GiB": "as=1073741824", "core=0": "core=0",
				"nproc=unlimited": "nproc=unlimited"},
			[]string{"", "nofile", "nofile=", "nofile=-1", "nofile=many", "files=3", "nofile=1,5", "=3"}},
		"host name": {hostName,
			map[string]string{"Tendril": "tendril", "a.b-c.d_e": "a.b-c.d_e", "10.0.0.7": "10.0.0.7", "[FE80::1]": "fe80::1"},
			[]string{"", "tendril:9325", "http://tendril", "a b", "a/b", "*", strings.Repeat("a", 254)}},
		"log folder": {appLogFolder,
			map[string]string{"off": "", "/var/log/": "/var/log"},
			[]string{"", "a\nb"}},
		"scale target": {scaleTarget,
			map[string]string{"none": "none", "processes": "processes", "publish": "publish", "asg:my group": "asg:my group"},
			[]string{"", "asg", "asg:", "asg:a:b", "asg:a/b", "instances", "Processes", "asg:" + strings.Repeat("g", 256)}},
		"folder": {folderPath,
			map[string]string{"/a/b/": "/a/b", "/a/../b": "/b"},
			[]string{"", "a\x00b", "a\nb"}},
		"file": {filePath,
			map[string]string{"a b.yaml": "a b.yaml"},
			[]string{"", "a\nb"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for text, want := range c.good {
				if got, err := c.rule(text); err != nil || got != want {
					t.Errorf("%q is %q, %v; want %q", text, got, err, want)
				}
			}
			for _, text := range c.bad {
				if got, err := c.rule(text); err == nil {
					t.Errorf("%q is taken as %q", text, got)
				}
			}
		})
	}
}

func TestRegionOf(t *testing.T) {
	t.Parallel()
	for queueURL, want := range map[string]string{
		"https://sqs.eu-west-1.amazonaws.com/123456789012/jobs":       "eu-west-1",
		"https://sqs-fips.us-gov-west-1.amazonaws.com/1/jobs":         "us-gov-west-1",
		"https://sqs.cn-north-1.amazonaws.com.cn/1/jobs":              "cn-north-1",
		"https://sqs.eu-west-1.api.aws/1/jobs":                        "eu-west-1",
		"https://eu-west-1.queue.amazonaws.com/1/jobs":                "eu-west-1",
		"https://vpce-0a-1.sqs.us-east-2.vpce.amazonaws.com/1/jobs":   "us-east-2",
		"arn:aws:sqs:eu-central-1:123456789012:jobs":                  "eu-central-1",
		"https://SQS.Eu-West-1.amazonaws.com/1/jobs":                  "eu-west-1",
		"https://sqs.eu_west_1.amazonaws.com/1/jobs":                  "",
		"arn:aws:sqs:EU:123456789012:jobs":                            "",
		"https://queue.amazonaws.com/1/jobs":                          "",
		"http://127.0.0.1:9324/000000000000/jobs":                     "",
		"http://sqs.eu-west-1.localhost.localstack.cloud:4566/1/jobs": "",
		"https://sqs.amazonaws.com.example.org/1/jobs":                "",
		"": "",
		"https://sqs.eu-west-1.amazonaws.com.evil.example/1/not-amazons": "",
	} {
		if got := regionOf(queueURL); got != want {
			t.Errorf("the region of %s is %q, want %q", queueURL, got, want)
		}
	}
}
