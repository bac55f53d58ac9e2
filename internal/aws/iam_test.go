package aws

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/queue"
)

type fakeIAM struct {
	arn    string
	denied []string
	refuse string
	asked  []url.Values
	scopes []string
}

func (f *fakeIAM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	f.asked = append(f.asked, r.PostForm)
	scope := strings.Split(r.Header.Get("Authorization"), "/")
	f.scopes = append(f.scopes, strings.Join(scope[2:4], "/"))
	switch {
	case r.PostForm.Get("Action") == "GetCallerIdentity":
		w.Write([]byte("<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>" + f.arn +
			"</Arn><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"))
	case f.refuse != "":
		w.WriteHeader(http.StatusForbidden)
		w.Write([]byte("<ErrorResponse><Error><Code>" + f.refuse + "</Code><Message>not you</Message></Error>" +
			"</ErrorResponse>"))
	default:
		var b strings.Builder
		b.WriteString("<SimulatePrincipalPolicyResponse><SimulatePrincipalPolicyResult><EvaluationResults>")
		for name, values := range r.PostForm {
			if strings.HasPrefix(name, "ActionNames.member.") {
				decision := "allowed"
				if slices.Contains(f.denied, values[0]) {
					decision = "implicitDeny"
				}
				b.WriteString("<member><EvalActionName>" + values[0] + "</EvalActionName><EvalDecision>" + decision +
					"</EvalDecision></member>")
			}
		}
		b.WriteString("</EvaluationResults></SimulatePrincipalPolicyResult></SimulatePrincipalPolicyResponse>")
		w.Write([]byte(b.String()))
	}
}

func openIAM(t *testing.T, f *fakeIAM, variables map[string]string) *IAM {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "s",
		"AWS_REGION": "eu-west-1", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"} {
		t.Setenv(name, value)
	}
	for name, value := range variables {
		t.Setenv(name, strings.ReplaceAll(value, "SERVER", server.URL))
	}
	i, err := OpenIAM(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return i
}

func TestIAMSimulatesThePoliciesOfTheRole(t *testing.T) {
	f := &fakeIAM{arn: "arn:aws:sts::123456789012:assumed-role/shop/i-0", denied: []string{"sqs:DeleteMessage"}}
	i := openIAM(t, f, map[string]string{"AWS_ENDPOINT_URL_IAM": "SERVER", "AWS_ENDPOINT_URL_STS": "SERVER/"})
	caller, err := i.Caller(t.Context())
	if err != nil || caller != (Caller{"123456789012", f.arn}) || !i.Configured() || i.Region() != "eu-west-1" {
		t.Fatalf("%+v, %v", caller, err)
	}
	denied, err := i.Denied(t.Context(), caller, []string{"sqs:DeleteMessage", "sqs:ReceiveMessage"}, "arn:q",
		map[string][]string{"cloudwatch:namespace": {"a", "b"}})
	if err != nil || !slices.Equal(denied, []string{"sqs:DeleteMessage"}) {
		t.Errorf("denied %v, %v", denied, err)
	}
	want := url.Values{"Action": {"SimulatePrincipalPolicy"}, "Version": {"2010-05-08"},
		"PolicySourceArn": {"arn:aws:iam::123456789012:role/shop"}, "ResourceArns.member.1": {"arn:q"},
		"ActionNames.member.1": {"sqs:DeleteMessage"}, "ActionNames.member.2": {"sqs:ReceiveMessage"},
		"ContextEntries.member.1.ContextKeyName":            {"cloudwatch:namespace"},
		"ContextEntries.member.1.ContextKeyType":            {"stringList"},
		"ContextEntries.member.1.ContextKeyValues.member.1": {"a"},
		"ContextEntries.member.1.ContextKeyValues.member.2": {"b"}}
	if diff := cmp.Diff(want, f.asked[1]); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
	if want := []string{"eu-west-1/sts", "us-east-1/iam"}; !slices.Equal(f.scopes, want) {
		t.Errorf("signed for %v, want %v", f.scopes, want)
	}
}

func TestAnUnreachableSTSIsNotReportedAsIAM(t *testing.T) {
	sts := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer sts.Close()
	i := openIAM(t, &fakeIAM{}, map[string]string{"AWS_ENDPOINT_URL_IAM": "SERVER", "AWS_ENDPOINT_URL_STS": sts.URL})
	_, err := i.Caller(t.Context())
	if !errors.Is(err, queue.ErrUnreachable) || !strings.Contains(err.Error(), sts.URL+" did not respond") ||
		!strings.Contains(err.Error(), "AWS_ENDPOINT_URL_STS") {
		t.Errorf("got %v", err)
	}
}

func TestIAMRefusals(t *testing.T) {
	f := &fakeIAM{arn: "arn:aws:iam::123456789012:user/dev", refuse: "AccessDenied"}
	i := openIAM(t, f, map[string]string{"AWS_ENDPOINT_URL": "SERVER", "AWS_REGION": "cn-north-1"})
	caller, err := i.Caller(t.Context())
	if err != nil || caller.principal() != f.arn {
		t.Fatalf("%+v, %v", caller, err)
	}
	_, err = i.Denied(t.Context(), caller, []string{"sqs:ReceiveMessage"}, "*", nil)
	if !errors.Is(err, queue.ErrDenied) || !strings.Contains(err.Error(), "SimulatePrincipalPolicy: not you") {
		t.Errorf("refused: %v", err)
	}
	if want := []string{"cn-north-1/sts", "cn-north-1/iam"}; !slices.Equal(f.scopes, want) {
		t.Errorf("signed for %v, want %v", f.scopes, want)
	}
	f.refuse = ""
	if _, err = i.Denied(t.Context(), caller, nil, "*", nil); err != nil {
		t.Errorf("nothing asked: %v", err)
	}
	none := openIAM(t, f, map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
		"AWS_EC2_METADATA_DISABLED": "true"})
	if _, err := none.Caller(t.Context()); !errors.Is(err, queue.ErrDenied) {
		t.Errorf("without credentials: %v", err)
	}
}
