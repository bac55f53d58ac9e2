package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tendril/internal/aws"
	"tendril/internal/cli"
	"tendril/internal/cli/base"
	"tendril/internal/testing/testpeer"
)

func TestAlarmsAgainstAForeignCloud(t *testing.T) {
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	endpoint := testpeer.Moto(t, "cloudwatch", "sqs")
	dir := t.TempDir()
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": "eu-west-1",
		"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_CONFIG_FILE": filepath.Join(dir, "none"),
		"AWS_SHARED_CREDENTIALS_FILE": filepath.Join(dir, "none"), "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	tendril := func(code int, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, talk bytes.Buffer
		c := &base.CLI{In: strings.NewReader(""), Out: &out, Err: &talk,
			Environ: append(os.Environ(), "TENDRIL_DATA_DIR="+dir, "HOME="+dir)}
		if got := cli.Execute(c, args); got != code {
			t.Fatalf("tendril %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, &out, &talk)
		}
		return out.String(), talk.String()
	}
	shop := func(verb string, more ...string) []string {
		return append([]string{"alarms", verb, "--queue", "orders", "--backend", "sqs", "--name", "shop",
			"--environment-name", "shop-prod", "--cloudwatch", "on"}, more...)
	}
	contains := func(text string, wanted ...string) {
		t.Helper()
		for _, want := range wanted {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in:\n%s", want, text)
			}
		}
	}

	if _, talk := tendril(6, shop("apply")...); !strings.Contains(talk, "orders") {
		t.Errorf("a queue that does not exist: %s", talk)
	}
	tendril(0, "queues", "create", "orders", "--backend", "sqs", "--dead-letter", "orders-dead")
	out, talk := tendril(0, shop("apply", "--dry-run")...)
	contains(out, "create alarm tendril/shop/queue-age/orders: ", "create dashboard tendril-shop\n")
	contains(talk, "nothing was changed: --dry-run")
	out, _ = tendril(0, shop("show")...)
	contains(out, "tendril/shop/health", "not created")

	_, talk = tendril(0, shop("apply")...)
	contains(talk, "warning: these alarms have no one to notify")
	out, _ = tendril(0, shop("apply")...)
	if strings.Count(out, "keep ") != 6 || strings.Count(out, "\n") != 6 {
		t.Errorf("applying twice changes something:\n%s", out)
	}
	file := filepath.Join(dir, "own.yaml")
	if err := os.WriteFile(file, []byte("alarms:\n  queue-age: {threshold: 60}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ = tendril(0, shop("show", "--alarms-file", file)...)
	contains(out, "differs: threshold", "in force")
	out, _ = tendril(0, shop("apply", "--alarms-file", file, "--action", "arn:aws:sns:eu-west-1:1:on-call")...)
	contains(out, "change alarm tendril/shop/queue-age/orders: threshold 1800 -> 60, actions [] -> [arn:aws:")

	out, _ = tendril(0, shop("show", "-o", "json")...)
	var shown struct {
		Region          string `json:"region"`
		DashboardStatus string `json:"dashboardStatus"`
		Alarms          []struct {
			aws.Alarm
			State   string   `json:"state"`
			Status  string   `json:"status"`
			Changes []string `json:"changes"`
		} `json:"alarms"`
	}
	if err := json.Unmarshal([]byte(out), &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Alarms) != 5 || shown.Region != "eu-west-1" || shown.DashboardStatus != "in force" ||
		shown.Alarms[0].State == "" || shown.Alarms[0].Status != "in force" || len(shown.Alarms[0].Actions) != 1 ||
		shown.Alarms[4].Status != "differs" || len(shown.Alarms[4].Changes) != 1 { // only its threshold
		t.Errorf("%+v", shown)
	}

	tendril(0, "alarms", "apply", "--name", "shop2", "--queue", "orders", "--backend", "sqs")
	_, talk = tendril(2, "alarms", "delete", "--name", "shop")
	contains(talk, "this would delete 5 alarms and the dashboard of shop", "--yes")
	out, _ = tendril(0, "alarms", "delete", "--name", "shop", "--yes")
	contains(out, "delete alarm tendril/shop/health\n", "delete dashboard tendril-shop\n")
	_, talk = tendril(0, "alarms", "delete", "--name", "shop", "--yes")
	contains(talk, "shop has no alarms and no dashboard in eu-west-1")
	out, _ = tendril(0, "alarms", "apply", "--name", "shop2", "--queue", "orders", "--backend", "sqs")
	if strings.Count(out, "keep ") != 3 {
		t.Errorf("the alarms of another environment were touched:\n%s", out)
	}
}
