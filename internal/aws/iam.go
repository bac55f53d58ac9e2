package aws

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"tendril/queue"
)

// IAM identifies the caller and simulates its permissions. It bypasses the SDK's clients to save dependencies.
type IAM struct {
	credentials sdk.CredentialsProvider
	sts, iam    signedEndpoint // share an exchanger, so Close closes only one
	region      string
	configured  bool
}

// Close closes idle connections.
func (i *IAM) Close() { i.iam.service.close() }

// Region returns the configured region, or "".
func (i *IAM) Region() string { return i.region }

// Configured reports whether an endpoint other than AWS's is configured.
func (i *IAM) Configured() bool { return i.configured }

// signedEndpoint's host is its URL.
type signedEndpoint struct {
	service
	region string
}

// Caller is the owner of the credentials.
type Caller struct {
	// ARN identifies a user, a role session or the account's root user.
	Account, ARN string
}

// OpenIAM creates a client from the AWS configuration.
func OpenIAM(ctx context.Context, opts *Options) (*IAM, error) {
	cfg, service, err := loadConfig(ctx, opts, "IAM")
	if err != nil {
		return nil, err
	}

	i := &IAM{credentials: cfg.Credentials, region: cfg.Region}
	i.iam.service, i.sts.service = service, service
	i.sts.rename("STS")
	i.locate(cmp.Or(cfg.Region, localRegion))
	for _, at := range []*signedEndpoint{&i.iam, &i.sts} {
		if other := strings.TrimSuffix(sdk.ToString(endpointOf(ctx, &cfg, at.id)), "/"); other != "" {
			i.configured = true
			at.host = other
		}
	}
	return i, nil
}

func (i *IAM) locate(region string) {
	i.iam.host, i.iam.region = "https://iam.amazonaws.com", "us-east-1"
	i.sts.host, i.sts.region = "https://sts."+region+".amazonaws.com", region
	switch {
	case strings.HasPrefix(region, "cn-"):
		i.iam.host, i.iam.region = "https://iam.cn-north-1.amazonaws.com.cn", "cn-north-1"
		i.sts.host += ".cn"
	case strings.HasPrefix(region, "us-gov-"):
		i.iam.host, i.iam.region = "https://iam.us-gov.amazonaws.com", "us-gov-west-1"
	}
}

// Caller returns the owner of the credentials. It needs no permissions.
func (i *IAM) Caller(ctx context.Context) (Caller, error) {
	var answer struct {
		Account string `xml:"GetCallerIdentityResult>Account"`
		ARN     string `xml:"GetCallerIdentityResult>Arn"`
	}
	err := i.call(ctx, &i.sts, url.Values{"Action": {"GetCallerIdentity"}, "Version": {"2011-06-15"}}, &answer)
	return Caller{answer.Account, answer.ARN}, err
}

// Denied returns the actions that the caller's policies do not allow on a resource. conditions contains the values of
// condition keys. It needs iam:SimulatePrincipalPolicy.
func (i *IAM) Denied(ctx context.Context, c Caller, actions []string, resource string,
	conditions map[string][]string) (denied []string, err error) {
	var answer struct {
		Results []struct {
			Action   string `xml:"EvalActionName"`
			Decision string `xml:"EvalDecision"`
		} `xml:"SimulatePrincipalPolicyResult>EvaluationResults>member"`
	}
	if err := i.call(ctx, &i.iam, simulationForm(c, actions, resource, conditions), &answer); err != nil {
		return nil, err
	}

	evaluated := 0
	for _, r := range answer.Results {
		if !slices.Contains(actions, r.Action) {
			continue
		}
		evaluated++
		if r.Decision != "allowed" {
			denied = append(denied, r.Action)
		}
	}
	if evaluated < len(actions) {
		return nil, queue.Errorf(queue.CodeUnreachable, "SimulatePrincipalPolicy: %s evaluated %d of %d actions", i.iam.host, evaluated,
			len(actions))
	}
	return denied, nil
}

func simulationForm(c Caller, actions []string, resource string, conditions map[string][]string) url.Values {
	form := url.Values{"Action": {"SimulatePrincipalPolicy"}, "Version": {"2010-05-08"},
		"PolicySourceArn": {c.principal()}, "ResourceArns.member.1": {resource}}
	for i, action := range actions {
		form.Set(fmt.Sprintf("ActionNames.member.%d", i+1), action)
	}

	n := 0
	for key, values := range conditions {
		n++
		entry := fmt.Sprintf("ContextEntries.member.%d.", n)
		form.Set(entry+"ContextKeyName", key)
		form.Set(entry+"ContextKeyType", "stringList")
		for i, value := range values {
			form.Set(fmt.Sprintf("%sContextKeyValues.member.%d", entry, i+1), value)
		}
	}
	return form
}

func (c Caller) principal() string {
	head, name, found := strings.Cut(c.ARN, ":assumed-role/")
	if !found {
		return c.ARN
	}
	role, _, _ := strings.Cut(name, "/")
	return strings.Replace(head, ":sts:", ":iam:", 1) + ":role/" + role
}

const maxIAMAnswer = 1 << 20

func (i *IAM) call(ctx context.Context, at *signedEndpoint, form url.Values, answer any) error {
	if err := checkCredentials(ctx, i.credentials); err != nil {
		return err
	}
	action := form.Get("Action")
	return at.explain(ctx, action, i.exchange(ctx, at, form, answer), func(r *refusal) (code, message string) {
		return r.queueCode(), r.Error()
	})
}

func (i *IAM) exchange(ctx context.Context, at *signedEndpoint, form url.Values, answer any) error {
	req, err := i.request(ctx, at, form)
	if err != nil {
		return err
	}

	resp, err := at.exchanger.RoundTrip(req)
	if err != nil {
		return undelivered(ctx, err)
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(io.LimitReader(resp.Body, maxIAMAnswer))
	if err != nil {
		return undelivered(ctx, err)
	}

	if resp.StatusCode/100 != 2 {
		var refused struct {
			Code    string `xml:"Error>Code"`
			Message string `xml:"Error>Message"`
		}
		_ = xml.Unmarshal(text, &refused)
		return &refusal{status: resp.StatusCode, query: refused.Code, message: firstLine(refused.Message)}
	}
	return xml.Unmarshal(text, answer)
}

func (i *IAM) request(ctx context.Context, at *signedEndpoint, form url.Values) (*http.Request, error) {
	credentials, err := retrieve(ctx, i.credentials)
	if err != nil {
		return nil, err
	}

	body := form.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.host+"/", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	req.Header.Set("User-Agent", "tendril")

	name := strings.ToLower(at.id)
	err = v4.NewSigner().SignHTTP(ctx, credentials, req, payloadHash([]byte(body)), name, at.region, time.Now())
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", form.Get("Action"), err)
	}
	return req, nil
}
