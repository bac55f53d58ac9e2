package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tendril/internal/config/yamlfile"
)

func TestSettingInForce(t *testing.T) {
	t.Parallel()
	b := &Bundle{Settings: []Setting{
		{Namespace: NamespaceWorker, Option: "HttpPath", Value: "/a", Line: 1},
		{Namespace: NamespaceEnvironment, Option: "HttpPath", Value: "/env", Line: 2},
		{Namespace: NamespaceWorker, Option: "HttpPath", Value: "/b", Line: 3},
		{Namespace: NamespaceEnvironment, Option: "A", Value: "1", File: "f", Line: 4},
		{Namespace: NamespaceEnvironment, Option: "HttpPath", Value: "", Line: 5},
	}}
	if s, ok := b.Setting(NamespaceWorker, "HttpPath"); !ok || s.Value != "/b" || s.Line != 3 {
		t.Errorf("got %v, %t", s, ok)
	}
	if s, ok := b.Setting(NamespaceWorker, "httppath"); ok {
		t.Errorf("names fold case: %v", s)
	}
	want := []Setting{{Namespace: NamespaceEnvironment, Option: "A", Value: "1", File: "f", Line: 4},
		{Namespace: NamespaceEnvironment, Option: "HttpPath", Line: 5}}
	if diff := cmp.Diff(want, b.Environment()); diff != "" {
		t.Error(diff)
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"DB_PASSWORD", "db.password", "DBPassword", "dbPassword", "RDS_PASSWORD", "PASSWORD", "PGPASSWORD", "MYSQL_PWD",
		"DB_PASS", "SMTP_PW",
		"API_KEY", "APIKey", "apikey", "STRIPE_SECRET", "SECRET_KEY_BASE", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID",
		"PRIVATE_KEY", "TLS_KEY",
		"GITHUB_TOKEN", "accessToken", "CLIENT_CREDENTIALS", "DATABASE_URL", "REDIS_URL", "SENTRY_DSN", "PASSWORD_SALT",
		"SLACK_WEBHOOK",
		"AzureConnectionString", "JWT", "COOKIE_SECRET", "ssh-passphrase", "HTTPAuth", "DB_URI",
		"DBPASS", "DB_PASS1", "dbPass2", "DB_PASS_2", "PASS", "PASSCODE", "PASSKEY", "PASSW", "MYSQLPWD", "DBPWD1",
		"PASSWORD1", "PW2", "BYPASSKEY",
		"MASTERKEY", "LICENSEKEY", "LICENSE_KEY2", "APPKEY", "AppKey", "appkey1", "SSHKEYS", "KEY", "KEY1",
		"ENCRYPTIONKEYS", "MONKEY_KEY", "DATABASE2_URL", "DATABASE_2_URL",
	} {
		if !isSecret(name) {
			t.Errorf("%s is shown", name)
		}
	}
	for _, name := range []string{
		"", "PORT", "PWD", "OLDPWD", "PATH", "HttpPath", "WORKER_SHUTDOWN_DELAY", "LOG_LEVEL", "NODE_ENV",
		"DJANGO_SETTINGS_MODULE", "BASE_URL", "API_URL",
		"KEYBOARD", "MONKEY", "COMPASS_HOST", "AUTHOR", "PASSENGER_COUNT", "QUEUE_URL", "MaxSize", "MeasureName", "TZ",
		"PASSENGER", "PASSENGERS2", "PASSIVE", "PASSIVE_MODE", "PassiveFTP", "PASSTHROUGH", "PASSTHRU_HEADERS", "PASSAGE",
		"PASSED", "PASSPORT_STRATEGY", "COMPASS", "BYPASS_PROXY",
		"TURKEY", "HOTKEY", "HOTKEYS", "DONKEYS1", "VALKEY_HOST", "KEYCLOAK_HOST", "KEYSPACE", "KEYWORDS", "HOCKEY_LEAGUE",
		"AUTH0_DOMAIN", "S3_BUCKET", "HTTP2", "PORT1", "1",
		"OLDPWD", "SPINNER", "CERTAIN", "SALTY", "PASTE",
	} {
		if isSecret(name) {
			t.Errorf("%s is hidden", name)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	b := &Bundle{Settings: []Setting{
		{Namespace: NamespaceEnvironment, Option: "DB_PASSWORD", Value: "hunter2"},
		{Namespace: NamespaceEnvironment, Option: "UPSTREAM", Value: "https://me:hunter2@example.com/"},
		{Namespace: NamespaceEnvironment, Option: "BROKEN", Value: "https://me:hunter2%zz@example.com/"},
		{Namespace: NamespaceEnvironment, Option: "PEM", Value: "-----BEGIN KEY-----hunter2"},
		{Namespace: "aws:rds:dbinstance", Option: "DBPassword", Value: "hunter2"},
	}}
	for _, text := range []string{fmt.Sprint(b.Settings), fmt.Sprintf("%+v", *b), fmt.Sprint(b.Environment()),
		fmt.Sprintf("%v", b.Environment()[0].Shown())} {
		if strings.Contains(text, "hunter2") || !strings.Contains(text, hidden) {
			t.Errorf("printed: %s", text)
		}
	}
	open := Setting{Option: "UPSTREAM", Value: "https://example.com/\x1b[2J"}
	if got := open.Shown(); got != "https://example.com/?[2J" {
		t.Errorf("got %q", got)
	}
	if got := (Setting{Option: "DB_PASSWORD"}).Shown(); got != "" {
		t.Errorf("an empty secret is shown as %q", got)
	}
}

func TestSecretValues(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"https://me:hunter2@example.com/", "jdbc:mysql://root:hunter2@db/x",
		"jdbc:postgresql://db/app?user=app&password=hunter2", "postgres://u:hun/ter2@db/x",
		"http://a:80,http://u:hunter2@b/", "see http://x/y,u:hunter2@host:3306/db", "redis://:hunter2@cache:6379/0",
		"mongodb+srv://u:hunter2@c.example/x?w=1",
		"amqp://u:1234@mq:5672", "mongodb://u:hunter2@a:1,b:2/x", "http://u:hun,ter2@x/", "ftp://u:hun ter2@x/",
		"postgres://u@srv:hunter2@srv.example/x",
		"https://hunter2hunter2@github.com/org/repo", "git+https://hunter2@github.com/org/repo@v1",
		"https://me:hunter2%zz@example.com/",
		"u:hunter2@host:3306/db", "u:hunter2@tcp(db:3306)/x", "u:hunter2@/db", "-x u:hunter2@host",
		"jdbc:oracle:thin:scott/hunter2@db:1521:x", "url=u:hunter2@host",
		"host=db user=app password=hunter2", "Server=db;Password=hunter2;", "Server=db;Pwd=hunter2",
		"password = 'hunter 2'", "AccountName=x;AccountKey=hunter2==;",
		"Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=hunter2=", "https://x/y?sv=1&sig=hunter2",
		"https://s3/x?X-Amz-Signature=hunter2", "https://x/?key=hunter2",
		"-Xmx512m -Djavax.net.ssl.keyStorePassword=hunter2", "-Dspring.datasource.password=hunter2",
		"--db-password=hunter2 -v", "a=password=hunter2", "a=b=key=hunter2",
		"PASSWORD1=hunter2", "DBPASS=hunter2", "password:hunter2", "user: app, password: hunter2", "pass:hunter2",
		"X-Api-Key: hunter2", "Authorization: Bearer hunter2", "token: hunter2",
		`{"user":"app","password":"hunter2"}`, `{"key": "hunter2"}`, `{\"token\":\"hunter2\"}`, `{'secret' : 'hunter2'}`,
		`$c["password"] = "hunter2"`, "a\npassword=hunter2\n",
		"-----BEGIN KEY-----hunter2", "arn:aws:sns:eu-west-1:1:x password=hunter2", "mailto:x@y.example,u:hunter2@host",
		"token=\nhunter2",
		strings.Repeat("x", maxSearched+1),
	} {
		if got := HideSecret("X", value); got != hidden {
			t.Errorf("%q is shown as %q", value, got)
		}
	}
	for _, value := range []string{
		"production", "NODE_ENV=production", "KEYBOARD=us", "true", "10:30", "10:30:00", "2026-11-20T10:30:00+01:00",
		"*/5 * * * *", "/usr/local/bin:/usr/bin:/bin", `C:\app\bin;D:\x`,
		"a@b.example", "Shop <a@b.example>", "a@b.example, c@d.example", "From: a@b.example", "mailto:x@y.z",
		"git@github.com:org/repo", "git@github.com:org/repo.git",
		"ssh://git@github.com/org/repo", "ssh://git@github.com:22/org/repo", "https://git@github.com/org/repo",
		"git+https://github.com/org/repo@v1#egg=x", "user@host:/srv",
		"https://example.com/x?y=z#part", "http://localhost:8080/a:b", "https://registry.example:4873/@org/x",
		"https://unpkg.example/x@1.2.3/y", "https://x/reset-password", "https://x/oauth/token?grant=code",
		"https://example.com/@me", "http://a:9200,http://b:9200", "a:9092,b:9092,c:9092", "redis://cache:6379/0",
		"jdbc:postgresql://db:5432/app?sslmode=require", "jdbc:oracle:thin:@db:1521:x",
		"mongodb://db:27017/x?authSource=admin", "amqps://mq:5671", "s3://bucket/key", "[::1]:80", "org/app:1.2",
		"1.dkr.ecr.eu-west-1.amazonaws.com/app:1@sha256:0123456789abcdef",
		"arn:aws:sqs:eu-west-1:123456789012:orders", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbCdEf",
		"arn:aws-cn:iam::123456789012:user/me@example.com",
		"arn:aws:ssm:eu-west-1:1:parameter/db/password:3", "arn:aws:iam::aws:policy/ReadOnly",
		"https://sqs.eu-west-1.amazonaws.com/123456789012/orders",
		"host=db user=app dbname=x", "Server=db;Database=x;", "-Xmx512m -Dfile.encoding=UTF-8",
		"-Djavax.net.ssl.keyStore=/etc/x", "--max_tokens=500 --tokenizer=gpt", "tokens: 5", "monkey=1", "compass: n",
		"passive=true", "secretary=anna", "pin_count=4", "password", "password=", "token: ", "forgot-password",
		"cn=app,ou=x", "a=b&c=d", "key", "text/plain; charset=utf-8", "%h %l %u [%t]",
		`{"Version":1,"Rules":{"Environment":{"ELB":{"ELBRequests4xx":{"Enabled":false}}}}}`, `{"name":"x","at":"10:30"}`,
		"sha256:0123456789abcdef", "config: x", "foo:bar", "", strings.Repeat("x", maxSearched),
	} {
		if got := HideSecret("X", value); got != value {
			t.Errorf("%q is shown as %q", value, got)
		}
	}
}

func TestAnyPasswordIsHidden(t *testing.T) {
	t.Parallel()
	password := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09!\"$%&'()*+,-.;<=>[\\]^_`{|}~ü")), 1, 20, -1)
	form := rapid.SampledFrom([]string{
		"u:%s@host:3306/db", "u:%s@tcp(db:3306)/x", "jdbc:mysql://root:%s@db/x", "redis://:%s@cache",
		"http://a:80,http://u:%s@b:80/x", "x, u:%s@h",
		"host=db password=%s", "Server=db;Password=%s;", "jdbc:postgresql://db/app?user=app&password=%s", "password: %s",
		`{"password":"%s"}`, "-Dx.y.password=%s -Xmx1g",
	})
	rapid.Check(t, func(t *rapid.T) {
		value := fmt.Sprintf(form.Draw(t, "form"), password.Draw(t, "password"))
		if got := HideSecret("X", value); got != hidden {
			t.Fatalf("%q is shown", value)
		}
	})
}

func TestErrorsHoldNoValues(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"option_settings:\n  DB_PASSWORD: hunter2\n",
		"option_settings:\n  - option_name: DB_PASSWORD\n    value: [hunter2]\n",
		"option_settings:\n  - option_name: A=B\n    value: hunter2\n",
		"option_settings:\n  - option_name: A\n    value: \"hunter2\n",
		"option_settings:\n  - option_name: A\n    value: hunter2: x: y\n",
		"option_settings:\n  - option_name: A\n    value: {hunter2\n",
		"option_settings:\n  - option_name: A\n    value: @hunter2\n",
		"option_settings:\n  - option_name: A\n    value: *hunter2\n",
		"option_settings:\n  - option_name: A\n    value: |hunter2\n",
		"option_settings:\n  - option_name: A\n    value: >hunter2\"x hunter2\n",
		"option_settings:\n  - option_name: A\n    value: !hunter2{\n",
		"option_settings:\n  - option_name: A\n    value: [!hunter2]\n",
		"option_settings:\n  - option_name: A\n    <<: *hunter2\n",
		"option_settings:\n  - option_name: A\n    ? [hunter2]\n    : hunter2\n",
		"%YAML hunter2\n---\na: b\n",
		"{\"option_settings\": [{\"option_name\": \"A\", \"value\": hunter2}]}",
		"option_settings: hunter2",
	} {
		_, err := Open(folder(t, map[string]string{".ebextensions/a.config": text}))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestMessagesOfTheParser(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: |hunter2":               "f:1:4: invalid YAML: invalid header option",
		"a: >\"hunter2\\\" \" x":    "f:1:4: invalid YAML: invalid header option",
		"a: \"hun\\ter2\\dx\"":      "f:1:14: invalid YAML: found unknown escape character",
		"a: \"\\'\"":                "f:1:6: invalid YAML: found unknown escape character",
		"a: !x{":                    "f:1:6: invalid YAML: found invalid tag character '{'",
		"a: @hunter2":               "f:1:4: invalid YAML: '@' is a reserved character",
		"a: [hunter2 {}]":           "f:1:13: invalid YAML: ',' or ']' must be specified",
		"a: {hunter2":               "f:1:5: invalid YAML: could not find flow map content",
		"a:\n\tb: \"hunter2 \" \"x": "f:2:1: invalid YAML: found character tab that cannot start any token",
	} {
		d := document{path: "f", name: "f"}
		if root := d.parse([]byte(text)); root != nil || len(d.problems) != 1 || d.problems[0].String() != want {
			t.Errorf("%q: %v, want %s", text, d.problems, want)
		}
	}
}

func TestOpenBoundsSettings(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range maxExtensions + 1 {
		many[fmt.Sprintf(".ebextensions/%03d.config", i)] = "option_settings: []"
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"files": {many, ".ebextensions: there are more than 200 configuration files"},
		"settings": {map[string]string{".ebextensions/a.config": manySettings(maxSettings + 2)},
			"a.config:2003:3: there are more than 2000 settings"},
		"problems": {map[string]string{".ebextensions/a.config": "option_settings:\n" + strings.Repeat("- x\n", 500)},
			"a.config:21:3: "},
		"long names": {map[string]string{".ebextensions/a.config": "option_settings:\n- option_name: " +
			strings.Repeat("n", 257) + "\n  value: x"}, "an option's name have 1 to 256 characters"},
		"a huge file": {map[string]string{".ebextensions/a.config": strings.Repeat("# x\n", 1<<20)},
			"the file is larger than 131072 bytes"},
		"a huge env": {map[string]string{"env.yaml": strings.Repeat("# x\n", 1<<20)},
			"env.yaml: the file is larger than 131072 bytes"},
		"no file": {map[string]string{".ebextensions/a.config/x": "", "Buildfile/": "", "env.yaml/": ""},
			"Buildfile: this is not a regular file"},
		"many hooks":     {manyHooks(maxHooks + 1), "prebuild: there are more than 200 hooks"},
		"NUL in a value": {map[string]string{".ebextensions/a.config": `{"option_settings": [{"option_name": "A", "value": "\u0000"}]}`}, "the value of A contains a NUL byte"},
	} {
		_, err := Open(folder(t, c.files))
		var wrong *invalidError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) || len(wrong.Problems) > maxProblems {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

func manySettings(n int) string {
	var b strings.Builder
	b.WriteString("option_settings:\n aws:elasticbeanstalk:application:environment:\n")
	for i := range n {
		fmt.Fprintf(&b, "  V%d: x\n", i)
	}
	return b.String()
}

func manyHooks(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf(".platform/hooks/prebuild/%03d", i)] = "#!/bin/sh"
	}
	return files
}

func TestOpenRejectsFilesInPlaceOfFolders(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".ebextensions", ".platform"} {
		if _, err := Open(folder(t, map[string]string{name: ""})); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is a file: %v", name, err)
		}
	}
}

func TestWrittenSettingsAreReadUnchanged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("aZ09 :#-'\"\\{}[]&*!|>%@`,.~?=<\n\tüß日😀")), 0, 12, -1)
		name := rapid.StringMatching(`[A-Za-z][A-Za-z0-9_.:/+@-]{0,10}`)
		want := map[string]map[string]string{}
		for _, namespace := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID[string]).Draw(t, "namespaces") {
			want[namespace] = map[string]string{}
			for _, option := range rapid.SliceOfNDistinct(name, 0, 4, rapid.ID[string]).Draw(t, "options") {
				value := text.Draw(t, "value")
				if trimmed := strings.TrimSpace(value); strings.HasPrefix(trimmed, "`{") {
					value = "x" // otherwise a CloudFormation function
				}
				want[namespace][option] = value
			}
		}
		for _, written := range []string{asJSON(want), asList(want), asYAML(want)} {
			r := &document{path: "f", name: "f"}
			keys := r.keys([]byte(written))
			if len(keys) == 0 {
				t.Fatalf("%s: %v", written, r.problems)
			}
			r.readSettings(keys[0])
			got := map[string]map[string]string{}
			for namespace, options := range want {
				if len(options) == 0 {
					got[namespace] = map[string]string{}
				}
			}
			for _, s := range r.settings {
				if got[s.Namespace] == nil {
					got[s.Namespace] = map[string]string{}
				}
				got[s.Namespace][s.Option] = s.Value
			}
			if diff := cmp.Diff(want, got); diff != "" || len(r.problems) > 0 {
				t.Fatalf("%s: %v\n%s", written, r.problems, diff)
			}
		}
	})
}

func asJSON(settings map[string]map[string]string) string {
	data, _ := json.MarshalIndent(map[string]any{"option_settings": settings}, "", "\t")
	return string(data)
}

func asList(settings map[string]map[string]string) string {
	list := []map[string]string{}
	for namespace, options := range settings {
		for option, value := range options {
			list = append(list, map[string]string{"namespace": namespace, "option_name": option, "value": value})
		}
	}
	data, _ := json.Marshal(map[string]any{"option_settings": list})
	return string(data)
}

func asYAML(settings map[string]map[string]string) string {
	var b strings.Builder
	b.WriteString("option_settings:\n")
	for namespace, options := range settings {
		fmt.Fprintf(&b, "  %q:\n", namespace)
		for option, value := range options {
			quoted, _ := json.Marshal(value)
			if len(value)%2 == 0 && !strings.ContainsAny(value, "\n\t") {
				quoted = []byte("'" + strings.ReplaceAll(value, "'", "''") + "'")
			}
			fmt.Fprintf(&b, "    %q: %s\n", option, quoted)
		}
	}
	return b.String()
}

// FuzzSettings checks that any file is rejected with a position, or results in settings that an environment can hold.
func FuzzSettings(f *testing.F) {
	for _, seed := range []string{
		"option_settings:\n  - option_name: A\n    value: b\n",
		"option_settings:\n  aws:elasticbeanstalk:sqsd:\n    HttpPath: /x\n",
		`{"option_settings": [{"option_name": "A", "value": 010}]}`, "a: &a [*a]", "option_settings: &x {<<: *x}",
		"? a\n: b", "--- a\n--- b", "\xff", "{a: b}",
		"EnvironmentName: a+\nEnvironmentLinks: {A: b}\nEnvironmentTier: {Name: Worker}\n",
		"commands: {a: b}\n!!map {a: b}", "a: |\n  b\n- c", "a: !Ref b", "{\"a\":[{}]}",
		"option_settings:\n- {option_name: ! , value: ! a}\n", "&a &b c", "*", "[",
		"a: &a {b: c}\noption_settings:\n  aws:elasticbeanstalk:application:environment: {<<: [*a, *a], ? d\n : e}\n",
		"%YAML 1.1\n---\n? a\n: b\n", "? <<\n: &a {<<: *a}", "a:\n\tb", ": :",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o := &reader{dir: t.TempDir(), bundle: &Bundle{}}
		for _, name := range []string{".ebextensions/a.config", "env.yaml"} {
			if err := writeFile(filepath.Join(o.dir, name), data); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.readExtension(".ebextensions/a.config"); err != nil {
			t.Fatal(err)
		}
		if err := o.readManifest(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 2
		for _, p := range o.problems {
			if p.Text == "" || p.Hint == "" || lineIn(p.Where) > lines || strings.ContainsFunc(p.String(), yamlfile.IsControl) {
				t.Errorf("problem %q", p)
			}
		}
		for _, finding := range o.bundle.Unsupported {
			if finding.What == "" || finding.Line > lines || strings.ContainsFunc(finding.String(), yamlfile.IsControl) {
				t.Errorf("finding %q", finding)
			}
		}
		for _, p := range o.bundle.Environment() {
			if p.Option == "" || strings.ContainsAny(p.Option, "=\x00") || strings.ContainsRune(p.Value, 0) || p.Line < 1 ||
				p.Line > lines {
				t.Errorf("variable %+v of %q", p, data)
			}
		}
		for _, l := range o.bundle.Links {
			if l.Variable == "" || strings.Contains(l.Variable, "=") || l.Environment == "" {
				t.Errorf("link %+v of %q", l, data)
			}
		}
	})
}

func lineIn(where string) (line int) {
	if parts := regexp.MustCompile(`:(\d+)(:\d+)?$`).FindStringSubmatch(where); parts != nil {
		line, _ = strconv.Atoi(parts[1])
	}
	return line
}
