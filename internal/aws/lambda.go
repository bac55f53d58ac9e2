package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go/logging"

	"tendril/queue"
)

var errPaused = errors.New("the queue was paused before the function was invoked")

// longestFunction is a function's maximum run time, plus overhead.
const longestFunction = 905 * time.Second

// Lambda invokes an AWS Lambda function. It is safe for concurrent use.
type Lambda struct {
	service   service
	api       client[lambda.Client]
	function  functionReference
	qualifier *string
	timeout   time.Duration
}

// Close closes idle connections.
func (l *Lambda) Close() { l.service.close() }

// LambdaOptions configure [OpenLambda]. Only Function is required.
type LambdaOptions struct {
	Client Options
	// Function is a name, partial ARN or ARN, optionally with an alias or version.
	Function string
	// Timeout limits one call; 0 means 905 s.
	Timeout time.Duration
}

// OpenLambda creates a client from the AWS configuration.
func OpenLambda(ctx context.Context, opts *LambdaOptions) (*Lambda, error) {
	opts = cmp.Or(opts, &LambdaOptions{})
	function, err := parseFunction(opts.Function)
	if err != nil {
		return nil, queue.Errorf(queue.CodeInvalidParameterValue, "%w", err)
	}

	cfg, service, err := loadConfig(ctx, &opts.Client, "Lambda")
	if err != nil {
		return nil, err
	}
	cfg.Region = cmp.Or(function.region, cfg.Region)
	if err := service.locate(ctx, &cfg, "Lambda function "+function.String()); err != nil {
		return nil, err
	}

	api := lambda.NewFromConfig(cfg, func(o *lambda.Options) {
		o.HTTPClient = &http.Client{Transport: &onceTransport{next: service.exchanger.transport}, CheckRedirect: keepRedirect}
		o.Retryer = sdk.NopRetryer{}
		o.Logger = logging.Nop{}
	})

	l := &Lambda{service: service, api: newClient(api), function: function,
		timeout: cmp.Or(max(opts.Timeout, 0), longestFunction)}
	if function.qualifier != "" {
		l.qualifier = &function.qualifier
	}
	return l, nil
}

// Invoke runs the function once with a JSON payload and waits for its result. It repeats the call only if a reused
// connection failed before a byte was sent. If paused (may be nil) returns true just before the call, the function
// is not invoked. payload must not change afterwards, because an abandoned connection may still read it.
func (l *Lambda) Invoke(ctx context.Context, payload []byte, paused func() bool) (queue.Invocation, error) {
	limited, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	sent := sending{payload: payload, paused: paused}
	answered, err := l.call(limited, types.InvocationTypeRequestResponse, &sent)
	if err == nil {
		return answered, nil
	}
	if late := limited.Err(); late != nil && !errors.Is(err, late) {
		err = fmt.Errorf("%w: %w", late, err) // after the deadline, the body's error may only be "closed"
	}
	return queue.Invocation{}, &invokeError{Sent: sent.started.Load(), Err: l.unanswered(ctx, err)}
}

func (l *Lambda) call(ctx context.Context, kind types.InvocationType, sent *sending) (queue.Invocation, error) {
	if err := checkCredentials(ctx, l.api.get().Options().Credentials); err != nil {
		return queue.Invocation{}, err
	}
	if sent.paused != nil && sent.paused() {
		return queue.Invocation{}, errPaused
	}

	out, err := l.api.get().Invoke(context.WithValue(ctx, sendingKey{}, sent), &lambda.InvokeInput{
		FunctionName: &l.function.called, Qualifier: l.qualifier, InvocationType: kind, Payload: sent.payload,
	})
	if err != nil {
		if refused, ok := refusedInvocation(err); ok {
			return refused, nil
		}
		return queue.Invocation{}, err
	}

	id, _ := awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
	return queue.Invocation{
		Status: int(out.StatusCode), FunctionError: sdk.ToString(out.FunctionError), Payload: out.Payload, RequestID: id,
	}, nil
}

// Check verifies that the function exists and may be invoked, without running it. It needs only lambda:InvokeFunction.
func (l *Lambda) Check(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answered, err := l.call(limited, types.InvocationTypeDryRun, &sending{})
	switch {
	case err != nil:
		return l.unanswered(ctx, err)
	case answered.Status/100 == 2:
		return nil
	}
	return l.explain(&refusal{status: answered.Status, shape: answered.Code, message: answered.Message},
		"lambda:InvokeFunction")
}

// FunctionTimeout returns the function's timeout. Without the permission lambda:GetFunctionConfiguration, the error
// code is queue.CodeAccessDenied.
func (l *Lambda) FunctionTimeout(ctx context.Context) (time.Duration, error) {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := l.api.get().GetFunctionConfiguration(limited, &lambda.GetFunctionConfigurationInput{
		FunctionName: &l.function.called, Qualifier: l.qualifier,
	})
	if err == nil {
		return time.Duration(sdk.ToInt32(out.Timeout)) * time.Second, nil
	}

	if refused := refusalIn(err); refused != nil {
		return 0, l.explain(refused, "lambda:GetFunctionConfiguration")
	}
	return 0, l.unanswered(ctx, err)
}

func (l *Lambda) unanswered(ctx context.Context, err error) error {
	return l.service.unanswered(ctx, "calling Lambda function "+l.function.String(), err)
}

func (l *Lambda) explain(refused *refusal, permission string) error {
	code, message := refused.queueCode(), refused.Error()
	switch {
	case code == queue.CodeResourceNotFound:
		region := l.api.get().Options().Region
		message = fmt.Sprintf("Lambda function %s does not exist in region %s (%s): check its name, its alias or version, "+
			"the account and the region; 'aws lambda list-functions --region %s' lists the existing ones", l.function, region,
			l.service.host, region)
	case code == queue.CodeAccessDenied:
		message = fmt.Sprintf("%s denied access to Lambda function %s: %s; allow these credentials %s on it, and check "+
			"that they have not expired", l.service.host, l.function, message, permission)
	case refused.isForeign() && refused.status != http.StatusTooManyRequests:
		message = fmt.Sprintf("Lambda function %s: %s", l.function,
			refused.foreignMessage(l.service.host, "Lambda", "the region, AWS_ENDPOINT_URL_LAMBDA"))
	default:
		message = fmt.Sprintf("Lambda function %s at %s: %s; check the function in the Lambda console", l.function,
			l.service.host, message)
	}

	return &queue.Error{Code: code, Message: message, Err: refused}
}

type functionReference struct {
	name string
	// qualifier is an alias or version; "" means $LATEST.
	qualifier string
	region    string
	// called is the FunctionName in API calls: a name or ARN without the qualifier.
	called string
}

func (r functionReference) String() string {
	if r.qualifier == "" {
		return r.name
	}
	return r.name + ":" + r.qualifier
}

var (
	functionName      = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	functionQualifier = regexp.MustCompile(`^([A-Za-z0-9_-]+|\$LATEST)$`)
	accountID         = regexp.MustCompile(`^\d{12}$`)
)

func parseFunction(s string) (functionReference, error) {
	r, err := splitFunction(s)
	if err != nil {
		return functionReference{},
			fmt.Errorf("%q is not a Lambda function: %w; use its name, such as resize or resize:live, "+
				"or its ARN, such as arn:aws:lambda:us-east-1:123456789012:function:resize", s, err)
	}
	return r, nil
}

func splitFunction(s string) (functionReference, error) {
	if strings.HasPrefix(s, "arn:") {
		return splitFunctionARN(s)
	}
	if strings.Contains(s, "://") {
		return functionReference{}, errors.New("it is a URL, and functions are invoked by name")
	}

	account, name, partial := strings.Cut(s, ":function:")
	if !partial {
		return functionReference{}.withName(s, "")
	}
	if !accountID.MatchString(account) {
		return functionReference{}, fmt.Errorf("%q is not an account", account)
	}
	return functionReference{}.withName(name, account+":function:")
}

func splitFunctionARN(s string) (functionReference, error) {
	a, err := arn.Parse(s)
	if err != nil {
		return functionReference{}, err
	}

	name, isFunction := strings.CutPrefix(a.Resource, "function:")
	switch {
	case a.Service != "lambda":
		err = fmt.Errorf("its service is %q, not lambda", a.Service)
	case a.Region == "" || a.AccountID == "":
		err = errors.New("the region or the account is empty")
	case !hostLabel.MatchString(a.Region):
		err = fmt.Errorf("%q is not a region", a.Region)
	case !isFunction:
		err = errors.New("it does not name a function")
	}
	if err != nil {
		return functionReference{}, err
	}

	return functionReference{region: a.Region}.withName(name, "arn:"+a.Partition+":lambda:"+a.Region+":"+a.AccountID+":function:")
}

func (r functionReference) withName(s, prefix string) (functionReference, error) {
	name, qualifier, qualified := strings.Cut(s, ":")
	if len(name) > 64 || !functionName.MatchString(name) {
		return r, fmt.Errorf("%q is not a name of 1 to 64 letters, digits, - and _", name)
	}
	if qualified && (len(qualifier) > 128 || !functionQualifier.MatchString(qualifier)) {
		return r, fmt.Errorf("%q is not an alias or version", qualifier)
	}
	r.name = name
	r.qualifier = qualifier
	r.called = prefix + name
	return r, nil
}
