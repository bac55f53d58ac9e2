package broker

import (
	"fmt"
	"strings"
	"testing"

	"tendril/queue"
)

func TestG8PermissionsArePolicyStatements(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "q", nil)
	add := func(label string, accounts, actions []string) {
		t.Helper()
		if err := b.AddPermission(t.Context(), "q", label, accounts, actions); err != nil {
			t.Fatal(err)
		}
	}
	policy := func() string {
		a, err := b.Attributes("q")
		if err != nil {
			t.Fatal(err)
		}
		return a["Policy"]
	}
	arn, one := b.ARN("q"), []string{"111122223333"}
	add("first", one, []string{"SendMessage"})
	begin := `{"Version":"2008-10-17","Id":"` + arn + `/SQSDefaultPolicy","Statement":[`
	first := `{"Sid":"first","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111122223333:root"},` +
		`"Action":"SQS:SendMessage","Resource":"` + arn + `"}`
	if want := begin + first + `]}`; policy() != want {
		t.Errorf("policy\n%s, want\n%s", policy(), want)
	}
	add("second", []string{"111122223333", "444455556666"}, []string{"ReceiveMessage", "DeleteMessage"})
	second := `{"Sid":"second","Effect":"Allow",` +
		`"Principal":{"AWS":["arn:aws:iam::111122223333:root","arn:aws:iam::444455556666:root"]},` +
		`"Action":["SQS:ReceiveMessage","SQS:DeleteMessage"],"Resource":"` + arn + `"}`
	if want := begin + first + `,` + second + `]}`; policy() != want {
		t.Errorf("policy\n%s, want\n%s", policy(), want)
	}
	wantError(t, b.AddPermission(t.Context(), "q", "first", one, []string{"SendMessage"}),
		queue.CodeInvalidParameterValue, "Value first for parameter Label is invalid. Reason: Already exists.")
	wantError(t, b.RemovePermission(t.Context(), "q", "third"),
		queue.CodeInvalidParameterValue, "Value third for parameter Label is invalid. Reason: can't find label.")
	for _, label := range []string{"first", "second"} {
		if err := b.RemovePermission(t.Context(), "q", label); err != nil {
			t.Fatal(err)
		}
	}
	a, _ := b.Attributes("q")
	if policy, ok := a["Policy"]; ok {
		t.Errorf("after the last removal there is a policy: %s", policy)
	}
}

func TestG8PermissionsJoinAPolicyThatAPersonWrote(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "q", map[string]string{"Policy": `{"Version":"2012-10-17","Statement":{"Sid":"own","Effect":"Allow"}}`})
	if err := b.AddPermission(t.Context(), "q", "more", []string{"111122223333"}, []string{"*"}); err != nil {
		t.Fatal(err)
	}
	a, _ := b.Attributes("q")
	if want := `{"Version":"2012-10-17","Statement":[{"Sid":"own","Effect":"Allow"},{"Sid":"more",`; !strings.HasPrefix(
		a["Policy"], want) || !strings.Contains(a["Policy"], `"Action":"SQS:*"`) {
		t.Errorf("policy %s, want it to begin with %s", a["Policy"], want)
	}
	wantError(t, b.AddPermission(t.Context(), "q", "own", []string{"111122223333"}, []string{"*"}),
		queue.CodeInvalidParameterValue, "Value own for parameter Label is invalid. Reason: Already exists.")
}

func TestG8PermissionRefusals(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	create(t, b, "q", nil)
	accounts := []string{"111122223333"}
	for _, c := range []struct {
		name, label       string
		accounts, actions []string
		code              string
	}{
		{"no label", "", accounts, []string{"SendMessage"}, queue.CodeInvalidParameterValue},
		{"long label", strings.Repeat("l", 81), accounts, []string{"SendMessage"}, queue.CodeInvalidParameterValue},
		{"label", "a b", accounts, []string{"SendMessage"}, queue.CodeInvalidParameterValue},
		{"no account", "l", nil, []string{"SendMessage"}, queue.CodeInvalidParameterValue},
		{"account", "l", []string{"1111"}, []string{"SendMessage"}, queue.CodeInvalidParameterValue},
		{"no action", "l", accounts, nil, queue.CodeMissingRequiredParameter},
		{"eight actions", "l", accounts, grantable[:8], queue.CodeOverLimit},
		{"the owner's", "l", accounts, []string{"SendMessage", "DeleteQueue"}, queue.CodeInvalidParameterValue},
	} {
		err := b.AddPermission(t.Context(), "q", c.label, c.accounts, c.actions)
		if e, ok := err.(*queue.Error); !ok || e.Code != c.code {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		err = b.AddPermission(t.Context(), "q", fmt.Sprint(i), accounts, grantable[1:8])
	}
	if e, ok := err.(*queue.Error); !ok || e.Code != queue.CodeOverLimit {
		t.Errorf("a policy without end: %v", err)
	}
	if a, _ := b.Attributes("q"); len(a["Policy"]) > maxPolicy {
		t.Errorf("the policy has %d bytes", len(a["Policy"]))
	}
}

func TestG9BoundsOfTagsPolicyAndKey(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	tags := map[string]string{}
	for i := range 50 {
		tags[fmt.Sprint(i)] = strings.Repeat("ü", 256)
	}
	if err := b.CreateQueue(t.Context(), "q", nil, tags); err != nil {
		t.Fatal(err)
	}
	const many = "Too many tags added for queue q."
	err := b.SetTags(t.Context(), "q", map[string]string{"one more": ""}, nil)
	wantError(t, err, queue.CodeInvalidParameterValue, many)
	if err := b.SetTags(t.Context(), "q", map[string]string{"one more": "", "0": ""}, []string{"1"}); err != nil {
		t.Error(err)
	}
	tags["one more"] = ""
	wantError(t, b.CreateQueue(t.Context(), "q2", nil, tags), queue.CodeInvalidParameterValue,
		"Too many tags added for queue q2.")
	for key, value := range map[string]string{"": "", strings.Repeat("k", 129): "", "k": strings.Repeat("v", 257)} {
		if err := b.SetTags(t.Context(), "q", map[string]string{key: value}, nil); err == nil {
			t.Errorf("a key of %d and a value of %d characters were accepted", len(key), len(value))
		}
	}
	for name, value := range map[string]string{
		"Policy": `{"Version":"` + strings.Repeat("x", maxPolicy) + `"}`, "KmsMasterKeyId": strings.Repeat("k", maxKeyID+1)} {
		err := b.SetAttributes(t.Context(), "q", map[string]string{name: value})
		wantError(t, err, queue.CodeInvalidAttributeValue, "Invalid value for the parameter "+name+".")
	}
	err = b.SetAttributes(t.Context(), "q", map[string]string{"Policy": "no JSON"})
	wantError(t, err, queue.CodeInvalidAttributeValue, "Invalid value for the parameter Policy.")
}

func TestQueueCountIsBounded(t *testing.T) {
	t.Parallel()
	b := openTest(t, limited(func(l *memoryLimits) { l.queues = 2 }))
	create(t, b, "a", nil)
	create(t, b, "b", nil)
	wantError(t, b.CreateQueue(t.Context(), "c", nil, nil), queue.CodeOverLimit,
		"The limit of 2 queues is reached: delete one first.")
	create(t, b, "a", nil)
	if err := b.DeleteQueue(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	create(t, b, "c", nil)
}
