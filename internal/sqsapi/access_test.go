package sqsapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"tendril/internal/access"
	"tendril/internal/registry"
	"tendril/queue"
)

// signedClient signs requests for the host queue.internal and sends them to url.
func signedClient(t testing.TB, url string, p access.KeyPair) *sqs.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", url[len("http://"):])
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return sqs.New(sqs.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String("http://queue.internal:9324"), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(p.AccessKeyID, string(p.SecretAccessKey),
			string(p.SessionToken)),
		HTTPClient: &http.Client{Transport: transport},
	})
}

func keyring(t testing.TB, pairs ...access.KeyPair) (map[string]access.KeyPair, *access.Keyring) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "credentials.json")
	created := map[string]access.KeyPair{}
	for _, p := range pairs {
		pair, err := access.Create(path, p, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		created[p.Name] = pair
	}
	keys, err := access.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return created, keys
}

func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

func TestSignedRequests(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pairs, keys := keyring(t, access.KeyPair{Name: "ops", Allow: access.AllowAll, Expires: time.Now().Add(time.Hour)},
		access.KeyPair{Name: "web", Allow: access.AllowSend},
		access.KeyPair{Name: "job", Allow: access.AllowAll, Queues: []string{"jobs"}})
	ops, web, job := pairs["ops"], pairs["web"], pairs["job"]
	h := newHandler(t, &Options{Keys: keys})
	server := newServer(t, h)
	admin := signedClient(t, server, ops)
	url := newQueue(t, admin, "jobs", nil)
	mail := newQueue(t, admin, "mail", nil)

	send := func(p access.KeyPair, to *string) string {
		in := &sqs.SendMessageInput{QueueUrl: to, MessageBody: aws.String("x")}
		_, err := signedClient(t, server, p).SendMessage(ctx, in)
		return code(err)
	}
	receive := func(p access.KeyPair, from *string) string {
		_, err := signedClient(t, server, p).ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: from})
		return code(err)
	}
	forged, expired := web, ops
	forged.SecretAccessKey += "x"
	expired.SessionToken = ""
	const denied, refused = "AccessDenied", "SignatureDoesNotMatch"
	for name, c := range map[string]struct{ got, want string }{
		"ops sends":                      {send(ops, url), ""},
		"web sends":                      {send(web, url), ""},
		"web does not receive":           {receive(web, url), denied},
		"job receives from its queue":    {receive(job, url), ""},
		"job leaves the other alone":     {receive(job, mail), denied},
		"job learns nothing of absences": {receive(job, aws.String("http://h/000000000000/absent")), denied},
		"a forged signature":             {send(forged, url), refused},
		"without the session token":      {send(expired, url), refused},
		"an unknown key":                 {send(access.KeyPair{AccessKeyID: "AKIA", SecretAccessKey: "x"}, url), refused},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
	_, err := signedClient(t, server, job).ListQueues(ctx, &sqs.ListQueuesInput{})
	if code(err) != denied {
		t.Errorf("job lists queues: %v", err)
	}
	_, err = signedClient(t, server, job).CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("other")})
	if code(err) != denied {
		t.Errorf("job creates another queue: %v", err)
	}
	_, err = signedClient(t, server, web).GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("jobs")})
	if err != nil {
		t.Errorf("web finds the queue: %v", err)
	}
	if w := call(h, "ListQueues", "{}"); w.Code != http.StatusForbidden {
		t.Errorf("without a signature: status %d", w.Code)
	}
	setPolicy := func(policy string) error {
		_, err := admin.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: url,
			Attributes: map[string]string{"Policy": policy}})
		return err
	}
	if err := setPolicy(`{"Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::000000000000:user/web"},` +
		`"Action":"sqs:ReceiveMessage"},{"Effect":"Deny","Principal":"*","Action":"sqs:PurgeQueue"}]}`); err != nil {
		t.Fatal(err)
	}
	if got := receive(web, url); got != "" {
		t.Errorf("web receives by the policy: %q", got)
	}
	if _, err := admin.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: url}); code(err) != denied {
		t.Errorf("ops purges against the policy: %v", err)
	}
	if err := setPolicy(`{"Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:ReceiveMessage",` +
		`"Condition":{"IpAddress":{"aws:SourceIp":"127.0.0.0/8"}}},{"Effect":"Deny","Principal":"*",` +
		`"Action":"sqs:SendMessage","Condition":{"NotIpAddress":{"aws:SourceIp":"127.0.0.0/8"}}}]}`); err != nil {
		t.Fatal(err)
	}
	if got := receive(ops, url) + send(ops, url); got != denied {
		t.Errorf("denied to this address: %q", got)
	}
	if err := setPolicy(`{"Statement":[{"Effect":"Deny","Principal":"*","Action":"*",` +
		`"Condition":{"ArnLike":{"aws:SourceArn":"*"}}}]}`); code(err) != "InvalidAttributeValue" {
		t.Errorf("a policy that is not evaluated: %v", err)
	}
}

// Setting a redrive policy requires permission for its target queue.
func TestConfinedKeyPairCannotMoveMessagesToOtherQueues(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pairs, keys := keyring(t, access.KeyPair{Name: "ops", Allow: access.AllowAll},
		access.KeyPair{Name: "job", Allow: access.AllowAll, Queues: []string{"jobs", "new", "dead"}})
	server := newServer(t, newHandler(t, &Options{Keys: keys}))
	admin, job := signedClient(t, server, pairs["ops"]), signedClient(t, server, pairs["job"])
	url := newQueue(t, admin, "jobs", nil)
	newQueue(t, admin, "secret", nil)
	newQueue(t, admin, "dead", nil)

	redrive := func(to string) map[string]string {
		return map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:` + to +
			`","maxReceiveCount":1}`}
	}
	for _, c := range []struct{ name, target, want string }{
		{"a queue of its own", "dead", ""},
		{"another queue", "secret", "AccessDenied"},
		{"an absent queue", "absent", "AccessDenied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := job.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: url, Attributes: redrive(c.target)})
			if code(err) != c.want {
				t.Errorf("SetQueueAttributes: %v, want %q", err, c.want)
			}
			_, err = job.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("new"), Attributes: redrive(c.target)})
			if code(err) != c.want {
				t.Errorf("CreateQueue: %v, want %q", err, c.want)
			}
		})
	}
}

func TestTLSOnlyPolicyIsExplainedAndCanBeRepaired(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	mustCall(t, h, "CreateQueue", `{"QueueName":"jobs"}`)
	policy := `{\"Statement\":[{\"Effect\":\"Deny\",\"Principal\":\"*\",\"Action\":\"SQS:*\",` +
		`\"Condition\":{\"Bool\":{\"aws:SecureTransport\":\"false\"}}}]}`
	mustCall(t, h, "SetQueueAttributes", `{"QueueUrl":"jobs","Attributes":{"Policy":"`+policy+`"}}`)

	w := call(h, "SendMessage", `{"QueueUrl":"jobs","MessageBody":"x"}`)
	for _, want := range []string{"AccessDenied", "policy of queue jobs denies SendMessage", "not encrypted", "https",
		"SetQueueAttributes"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %s: want %q", w.Code, w.Body, want)
		}
	}

	mustCall(t, h, "GetQueueAttributes", `{"QueueUrl":"jobs","AttributeNames":["Policy"]}`)
	mustCall(t, h, "SetQueueAttributes", `{"QueueUrl":"jobs","Attributes":{"Policy":""}}`)
	mustCall(t, h, "SendMessage", `{"QueueUrl":"jobs","MessageBody":"x"}`)
}

func TestSocketsAnswerToAnyHost(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := Server(h)
	go server.Serve(l)
	defer server.Close()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", l.Addr().String())
	}}
	defer transport.CloseIdleConnections()
	client := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String("http://sqs"),
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: &http.Client{Transport: transport}})
	if url := newQueue(t, client, "jobs", nil); aws.ToString(url) != "http://sqs/000000000000/jobs" {
		t.Errorf("URL %s", aws.ToString(url))
	}
}

func TestSignedQueryRequests(t *testing.T) {
	t.Parallel()
	pairs, keys := keyring(t, access.KeyPair{Name: "web", Allow: access.AllowAll})
	h := newHandler(t, &Options{Keys: keys})
	signer, as := v4.NewSigner(), aws.Credentials{AccessKeyID: pairs["web"].AccessKeyID,
		SecretAccessKey: string(pairs["web"].SecretAccessKey)}
	digest := func(body string) string {
		sum := sha256.Sum256([]byte(body))
		return hex.EncodeToString(sum[:])
	}
	status := func(r *http.Request) int {
		r.RequestURI = ""
		return serve(h, r).Code
	}
	form := func(signed, sent string) *http.Request {
		r, _ := http.NewRequest(http.MethodPost, "http://queue.internal:9324/", strings.NewReader(sent))
		r.Header.Set("Content-Type", formType)
		if err := signer.SignHTTP(t.Context(), as, r, digest(signed), "sqs", "us-east-1", time.Now()); err != nil {
			t.Fatal(err)
		}
		return r
	}
	const create = "Action=CreateQueue&QueueName=jobs"
	if got := status(form(create, create)); got != http.StatusOK {
		t.Errorf("a signed form: status %d", got)
	}
	if got := status(form(create, "Action=CreateQueue&QueueName=mail")); got != http.StatusForbidden {
		t.Errorf("another body than the one that was signed: status %d", got)
	}
	r, _ := http.NewRequest(http.MethodGet,
		"http://queue.internal:9324/000000000000/jobs?Action=SendMessage&MessageBody=a%20b%2Bc&X-Amz-Expires=60", nil)
	url, _, err := signer.PresignHTTP(t.Context(), as, r, digest(""), "sqs", "us-east-1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if got := status(httptest.NewRequest(http.MethodGet, url, nil)); got != http.StatusOK {
		t.Errorf("a presigned URL: status %d", got)
	}
	changed := httptest.NewRequest(http.MethodGet, strings.Replace(url, "SendMessage", "PurgeQueue", 1), nil)
	if got := status(changed); got != http.StatusForbidden {
		t.Errorf("a presigned URL for another action: status %d", got)
	}
	unsigned := httptest.NewRequest(http.MethodGet, "http://queue.internal:9324/?Action=ListQueues", nil)
	if got := status(unsigned); got != http.StatusForbidden {
		t.Errorf("without a signature: status %d", got)
	}
}

// Any local user can call a loopback endpoint, so becoming the leader and enqueueing runs require the token.
func TestRegistryAsksForItsToken(t *testing.T) {
	t.Parallel()
	h := newHandler(t, &Options{RegistryToken: "0123456789abcdef"})
	url := newServer(t, h)
	client := func(token string) *RegistryClient {
		return NewRegistryClient(url, registry.Scope{}, Identity{Token: token},
			&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	}
	if found, err := client("0123456789abcdef").Probe(t.Context()); !found || err != nil {
		t.Errorf("with the token: %t, %v", found, err)
	}
	for _, token := range []string{"", "0123456789abcdeg"} {
		_, _, err := client(token).Swap(t.Context(), "periodic:jobs", queue.Lease{},
			queue.Lease{Owner: "intruder", Version: "v", Term: 1, Duration: time.Minute})
		if e := asQueueError(err); e == nil || e.Code != queue.CodeAccessDenied ||
			!strings.Contains(e.Message, "TENDRIL_REGISTRY_TOKEN") {
			t.Errorf("a lease with the token %q: %v", token, err)
		}
		if found, err := client(token).Probe(t.Context()); found || err == nil {
			t.Errorf("probe with the token %q: %t, %v", token, found, err)
		}
	}
	mustCall(t, h, "ListQueues", "{}")
}

func TestRegistryOfSignedRequests(t *testing.T) {
	t.Parallel()
	found := map[string]error{}
	pairs, keys := keyring(t, access.KeyPair{Name: "ops", Allow: access.AllowAll},
		access.KeyPair{Name: "web", Allow: access.AllowSend})
	url := newServer(t, newHandler(t, &Options{Keys: keys, RegistryToken: "0123456789abcdef"}))
	for _, p := range pairs {
		sign := func(r *http.Request, body []byte) error {
			sum := sha256.Sum256(body)
			return v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: p.AccessKeyID,
				SecretAccessKey: string(p.SecretAccessKey)}, r, hex.EncodeToString(sum[:]), "sqs", "us-east-1", time.Now())
		}
		c := NewRegistryClient(url, registry.Scope{}, Identity{Token: "0123456789abcdef", Sign: sign},
			&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
		_, found[p.Name] = c.Read(t.Context(), "periodic:jobs")
	}
	if found["ops"] != nil || !errors.Is(found["web"], queue.ErrDenied) {
		t.Errorf("found %v", found)
	}
}

// Neither another program on the port of a stopped 'tendril serve' nor, unless explicitly trusted, an earlier version
// of tendril may get the token.
func TestRegistryTokenIsNotSentToImpostors(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	var got atomic.Value
	got.Store("")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(got.Load().(string) + r.Header.Get(registryToken))
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write([]byte(`{"Last":{}}`))
	}))
	defer s.Close()
	client := func(insecure bool) *RegistryClient {
		return NewRegistryClient(s.URL, registry.Scope{}, Identity{Token: token, Insecure: insecure},
			&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	}
	found, err := client(false).Probe(t.Context())
	if e := asQueueError(err); found || e == nil || e.Code != queue.CodeAccessDenied ||
		!strings.Contains(e.Message, "upgrade") || !strings.Contains(e.Message, "--registry-insecure") {
		t.Errorf("an impostor: %v, %v", found, err)
	}
	if said := got.Load(); said != "" {
		t.Errorf("it got %q", said)
	}
	if found, err := client(true).Probe(t.Context()); !found || err != nil || got.Load() != token {
		t.Errorf("trusted on request: %v, %v; it got %q", found, err, got.Load())
	}
}
