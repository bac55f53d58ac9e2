package config

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/bundle"
)

func TestTable(t *testing.T) {
	t.Parallel()
	kebab := regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z]+)*$`)
	taken := map[string]string{}
	for _, o := range Options() {
		if !kebab.MatchString(o.Name) {
			t.Errorf("%s: the name is not kebab case", o.Name)
		}
		if !slices.Contains(Groups(), o.Group) {
			t.Errorf("%s: the group %q is not shown anywhere", o.Name, o.Group)
		}
		if !strings.HasSuffix(o.Help, ".") || len(o.Help) > 90 || strings.Contains(o.Help, "\n") || strings.Contains(o.Help,
			"|") {
			t.Errorf("%s: the help %q is not a sentence for a table", o.Name, o.Help)
		}
		if o.DefaultText() == "" || o.Allowed() == "" || o.Kind() == "" {
			t.Errorf("%s: default %q, allowed %q, kind %q", o.Name, o.DefaultText(), o.Allowed(), o.Kind())
		}
		if o.Name != "config" && o.Key != strings.ReplaceAll(o.Name, "-", "_") {
			t.Errorf("%s: the key is %q", o.Name, o.Key)
		}
		if o.Kind() == kindChoice != (len(o.Choices()) > 1) {
			t.Errorf("%s: kind %s with the choices %q", o.Name, o.Kind(), o.Choices())
		}
		for _, n := range slices.Concat(o.names(), o.cloneVariables) {
			if by := taken[n]; by != "" && by != o.Name {
				t.Errorf("%s and %s share the name %s", by, o.Name, n)
			}
			taken[n] = o.Name
		}
	}
}

func TestEssentialOptionsExist(t *testing.T) {
	t.Parallel()
	var first []string
	for _, o := range Options() {
		if o.Essential() {
			first = append(first, o.Name)
		}
	}
	if len(first) < 10 || len(first) > 15 {
		t.Errorf("%d options are shown first, want about a dozen: %q", len(first), first)
	}
}

func TestExamplesAreAccepted(t *testing.T) {
	t.Parallel()
	for _, o := range Options() {
		for _, text := range []string{o.Default, o.Example, o.example()} {
			if text == "" && text != o.example() {
				continue
			}
			var s Settings
			if err := o.set(&s, text); err != nil {
				t.Errorf("%s: %q %v", o.Name, text, err)
			}
			if got := o.get(&s); got != text {
				t.Errorf("%s: %q became %q", o.Name, text, got)
			}
		}
	}
}

func TestSuggestedSecretsAreNotPublic(t *testing.T) {
	t.Parallel()
	for _, o := range Options() {
		if suggested := o.example(); o.IsSecret() && suggested == o.example() {
			t.Errorf("%s: everybody knows the suggestion %q", o.Name, suggested)
		}
	}
	key, _ := Lookup("signing-secret")
	if err := key.set(&Settings{}, "whsec_THIS+IS+AN+EXAMPLE+DO+NOT+USE+IT"); err == nil {
		t.Error("the key of docs/signing.md is accepted")
	}
}

func TestEveryFieldHasItsOption(t *testing.T) {
	t.Parallel()
	other := map[string]string{kindDuration: "61s", kindInteger: "7", kindSize: "2KiB", kindRate: "7/s", kindNumber: "7"}
	derived := 1 // Strict is derived from Queues
	changedBy := map[string]string{}
	for _, o := range Options() {
		text := other[o.Kind()]
		switch o.Kind() {
		case kindText, kindList:
			text = map[string]string{"success-codes": "201", "mime-type": "text/plain", "http-path": "/x", "region": "eu-west-1",
				"listen": "127.0.0.1:1", "console": "off", "account-id": "123456789012"}[o.Name]
			if text == "" {
				text = o.example()
			}
		case kindInteger:
			if o.set(&Settings{}, text) != nil {
				text = "-7"
			}
		case kindSwitch:
			text = "true"
		case kindChoice:
			text = o.Choices()[1]
		case kindDuration:
			if o.set(&Settings{}, text) != nil {
				text = "0.5s"
				if o.set(&Settings{}, text) != nil {
					text = "7s"
				}
			}
		}
		var s Settings
		if err := o.set(&s, text); err != nil {
			t.Errorf("%s: %q %v", o.Name, text, err)
			continue
		}
		var fields []string
		for _, field := range settingsFields() {
			if !reflect.ValueOf(s).FieldByIndex(field.Index).IsZero() {
				fields = append(fields, field.Name)
			}
		}
		if len(fields) != 1 || changedBy[fields[0]] != "" {
			t.Errorf("%s changed %q (already by %q)", o.Name, fields, changedBy[strings.Join(fields, "")])
			continue
		}
		changedBy[fields[0]] = o.Name
		if want := strings.ReplaceAll(o.Name, "-", ""); o.Name != "config" && !strings.EqualFold(fields[0], want) {
			t.Errorf("%s fills the field %s", o.Name, fields[0])
		}
	}
	if n := len(settingsFields()) - derived; len(changedBy) != n {
		t.Errorf("%d of %d fields have an option: %v", len(changedBy), n, changedBy)
	}
}

func TestBeanstalkOptions(t *testing.T) {
	t.Parallel()
	want := map[string][3]string{
		"WorkerQueueURL":         {"queue_url", "", ""},
		"HttpPath":               {"http_path", "/", ""},
		"MimeType":               {"mime_type", "application/json", ""},
		"HttpConnections":        {"http_connections", "50", "1 to 1000"},
		"ConnectTimeout":         {"connect_timeout", "5s", "1s to 60s"},
		"InactivityTimeout":      {"inactivity_timeout", "180s", "1s to 36000s"},
		"VisibilityTimeout":      {"visibility_timeout", "300s", "0s to 43200s"},
		"ErrorVisibilityTimeout": {"error_visibility_timeout", "unset", "0s to 43200s, or unset"},
		"RetentionPeriod":        {"retention_period", "345600s", "60s to 1209600s"},
		"MaxRetries":             {"max_retries", "10", "1 to 1000"},
	}
	got := map[string][3]string{}
	for _, o := range Options() {
		if o.Beanstalk == "" || o.Namespace != bundle.NamespaceWorker {
			continue
		}
		allowed := o.Allowed()
		if o.Kind() == kindText {
			allowed = ""
		}
		got[o.Beanstalk] = [3]string{o.Key, o.Default, allowed}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOptionsOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	want := map[string][4]string{
		"MinSize":     {bundle.NamespaceGroup, "scale_min_size", "1", "1 to 10000"},
		"MaxSize":     {bundle.NamespaceGroup, "scale_max_size", "4", "1 to 10000"},
		"Cooldown":    {bundle.NamespaceGroup, "scale_cooldown", "360s", "0s to 10000s"},
		"MeasureName": {bundle.NamespaceTrigger, "scale_measure_name", "", ""}, // Elastic Beanstalk: NetworkOut
		"Statistic": {bundle.NamespaceTrigger, "scale_statistic", "Average",
			"Average, Minimum, Maximum or Sum"},
		"Unit":                      {bundle.NamespaceTrigger, "scale_unit", "", ""},                         // Elastic Beanstalk: Bytes
		"LowerThreshold":            {bundle.NamespaceTrigger, "scale_lower_threshold", "", "0 to 20000000"}, // Elastic Beanstalk: 2000000
		"UpperThreshold":            {bundle.NamespaceTrigger, "scale_upper_threshold", "", "0 to 20000000"}, // Elastic Beanstalk: 6000000
		"LowerBreachScaleIncrement": {bundle.NamespaceTrigger, "scale_lower_breach_scale_increment", "-1", "-10000 to -1"},
		"UpperBreachScaleIncrement": {bundle.NamespaceTrigger, "scale_upper_breach_scale_increment", "1", "1 to 10000"},
		"Period":                    {bundle.NamespaceTrigger, "scale_period", "300s", "1s to 36000s"},
		"EvaluationPeriods":         {bundle.NamespaceTrigger, "scale_evaluation_periods", "1", "1 to 600"},
		// Elastic Beanstalk: 5 minutes
		"BreachDuration": {bundle.NamespaceTrigger, "scale_breach_duration", "0s", "0s to 36000s"},
		"DeploymentPolicy": {bundle.NamespaceCommand, "rollout_policy", "AllAtOnce",
			"AllAtOnce or Rolling; other Elastic Beanstalk policies are not supported"},
		"BatchSizeType":     {bundle.NamespaceCommand, "rollout_batch_size_type", "Percentage", "Percentage or Fixed"},
		"BatchSize":         {bundle.NamespaceCommand, "rollout_batch_size", "100", "1 to 10000"},
		"Timeout":           {bundle.NamespaceCommand, "rollout_timeout", "600s", "1s to 3600s"},
		"IgnoreHealthCheck": {bundle.NamespaceCommand, "rollout_ignore_health", "false", "true or false"},
	}
	got := map[string][4]string{}
	for _, o := range Options() {
		if o.Beanstalk == "" || o.Namespace == bundle.NamespaceWorker || o.Namespace == bundle.NamespaceHealth {
			continue
		}
		allowed := o.Allowed()
		if o.Default == "" && o.Kind() == kindChoice {
			allowed = ""
		}
		got[o.Beanstalk] = [4]string{o.Namespace, o.Key, o.Default, allowed}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"http-connections", "--http-connections", "http_connections",
		"TENDRIL_HTTP_CONNECTIONS", "HttpConnections",
		"TENDRIL_SQSD_HttpConnections", "concurrency", "-concurrency", "WORKERLESS_CONCURRENCY"} {
		if o, found := Lookup(name); !found || o.Name != "http-connections" {
			t.Errorf("%s finds %q", name, o.Name)
		}
	}
	for name, want := range map[string]string{"drain_timeout": "shutdown-timeout",
		"ConnectionTimeout": "connect-timeout", "poll-for": "wait-time"} {
		if o, _ := Lookup(name); o.Name != want {
			t.Errorf("%s finds %q, want %s", name, o.Name, want)
		}
	}
	for _, name := range []string{"", "-", "nothing", "TENDRIL_SQSD_"} {
		if o, found := Lookup(name); found {
			t.Errorf("%q finds %s", name, o.Name)
		}
	}
}

func TestReference(t *testing.T) {
	t.Parallel()
	const page = "../../docs/options.md"
	got := Reference()
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatalf("%v; go test ./internal/config -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/options.md is not what the table says; go test ./internal/config -update writes it:\n%s", diff)
	}
	for _, o := range Options() {
		if !strings.Contains(got, "`--"+o.Name+"`") {
			t.Errorf("the page does not name --%s", o.Name)
		}
	}
}

func settingsFields() []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[Settings]()), func(f reflect.StructField) bool {
		return f.Anonymous
	})
}
